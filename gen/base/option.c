/* SPDX-License-Identifier: Apache-2.0
 *
 * option.c: the options of a command as a table.
 *
 * A variable of the shell that was not set is an empty word.  It names nothing, and a path that is made of it would begin at
 * the root.  A word that begins with - and is no number is the next option.
 */
#include "base.h"

bool option_is_value(const char *word)
{
    return word && *word && !(word[0] == '-' && word[1] && !strchr("0123456789", word[1]));
}

int option_take(const Option *table, void *to, char **argv)
{
    const char *word = argv[0], *equal = strncmp(word, "--", 2) ? NULL : strchr(word, '=');
    size_t n = equal ? (size_t)(equal - word) : strlen(word);
    while (table->name && (strlen(table->name) != n || strncmp(table->name, word, n)))
        table++;
    if (!table->name || table->kind == TAKEN_ELSEWHERE || (equal && table->kind == TAKES_NOTHING))
        return 0;
    if (table->kind == TAKES_NOTHING) {
        *((bool *)to + table->field) = true;
        return 1;
    }
    const char *value = equal ? equal + 1 : argv[1];
    if (equal ? !*value : !option_is_value(value))
        fail(EXIT_USAGE, "%s needs %s; see dpgen --help", table->name, table->value);
    if (table->kind == READS_FILE)
        file_reads(value);
    if (table->kind == WRITES_FILE)
        file_writes(value);
    *(const char **)(void *)((char *)to + table->field) = value;
    return equal ? 1 : 2;
}

const char *option_word(const char *what, const char *word)
{
    if (!*word)
        fail(EXIT_USAGE, "%s is an empty word, and names nothing; see dpgen --help", what);
    return word;
}

Strs option_words(const Option *table, void *to, int argc, char **argv, const char *what, int most,
                  void (*misuse)(const char *why))
{
    Strs words = {0};
    for (int i = 0, n; i < argc; i += n) {
        n = option_take(table, to, argv + i);
        if (!n && argv[i][0] == '-')
            misuse(strf("%s: no such option", argv[i]));
        if (!n && words.n == most)
            misuse(strf("%s is one too many", argv[i]));
        if (!n)
            *PUSH(&words) = option_word(what, argv[i]), n = 1;
    }
    return words;
}
