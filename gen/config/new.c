/* SPDX-License-Identifier: Apache-2.0
 *
 * new.c: dpgen new [NAME]: a small commented model to start from.  What is there is never written over.
 */
#include "model.h"

#include <errno.h>

static NORETURN void misuse(const char *why)
{
    fail(EXIT_USAGE, "new: %s; write dpgen new [NAME], with letters, digits, - and _", why);
}

/* NAME.yaml, or NAME alone; what stands behind the last / becomes the name of the model. */
static const char *stem_of(const char *word)
{
    const char *stem = text_without(word, ".yaml"), *path = stem ? stem : word, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strchr(C_LETTERS, *name) || strspn(name, C_WORD "-") != strlen(name) || strlen(name) > 63)
        misuse(strf("'%s' is no name of a model", name));
    return path;
}

int new_command(int argc, char **argv)
{
    if (argc > 1 || (argc == 1 && argv[0][0] == '-'))
        misuse(strf("what is %s?", argv[argc > 1]));
    const char *stem = stem_of(argc ? argv[0] : "model"), *path = strf("%s.yaml", stem), *slash = strrchr(stem, '/');
    FILE *f = fopen(path, "wx");
    if (!f && errno == EEXIST)
        fail(EXIT_USAGE, "%s is there already, and new writes over nothing; give another name: dpgen new NAME", path);
    if (!f)
        fail(EXIT_RUN, "cannot write %s: %s", path, strerror(errno));
    const char *name = slash ? slash + 1 : stem;
    static const char mark[] = "@model@";
    const char *at = embedded_find("templates/model.yaml")->data;
    for (const char *next; (next = strstr(at, mark)); at = next + sizeof mark - 1)
        fprintf(f, "%.*s%s", (int)(next - at), at, name);
    fputs(at, f);
    bool bad = fflush(f) != 0 || ferror(f);
    if (fclose(f) != 0 || bad) {
        int why = errno;
        remove(path);
        fail(EXIT_RUN, "cannot write %s: %s", path, strerror(why));
    }
    printf("wrote %s: dpgen check %s, or dpgen %s -o out && make -C out && out/train\n", path, path, path);
    return 0;
}
