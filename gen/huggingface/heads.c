/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: what a published model ends with, by the class that `architectures` names.
 *
 * A class is known by the end of its name.  A template writes the heads of some classes; another class of the same family has
 * weights that nobody takes, and lacks what a template trains.  Weights that lie in the folder are asked, too: published BERTs
 * are called BertForMaskedLM, and most have the second head all the same.
 */
#include "hf.h"
#include <unistd.h>

bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return true;
    return false;
}

static bool ends_with_one(const char *name, const char *classes)
{
    size_t n = strlen(name);
    for (const char *c = classes, *end; *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        size_t k = (size_t)(end - c);
        if (n >= k && !strncmp(name + n - k, c, k))
            return true;
    }
    return false;
}

static bool lists(const SafeFile *f, const char *name)
{
    for (int i = 0; f && i < f->tensor.n; i++)
        if (text_ends(f->tensor.at[i].name, name))
            return true;
    return false;
}

static const char *missing(const SafeFile *f, const Heads *h)
{
    for (const char *c = h->tensors, *end; f && *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        const char *name = strf("%.*s", (int)(end - c), c);
        if (!lists(f, name))
            return name;
    }
    return NULL;
}

/* The heads of a class; NULL: none that a template writes.  Weights that have all of the first are those of the first, whatever
 * their class is called, if it has what the class has. */
static const Heads *heads_of(const Heads *first, const Heads *end, const char *name, const SafeFile *f)
{
    const Heads *h = first;
    while (h < end && !ends_with_one(name, h->class))
        h++;
    if (h < end)
        return f && h != first && !strncmp(first->sets, h->sets, strlen(h->sets)) && !missing(f, first) ? first : h;
    /* Without a head: what a tied one needs is there. */
    bool bare = ends_with_one(name, "Model") && !ends_with_one(name, "EncoderModel HeadsModel HeadModel");
    return bare && (f || !*first->tensors) && !missing(f, first) ? first : NULL;
}

void heads_read(const Node *root, const Family *family, const char *folder, ConfigValues *values)
{
    const Node *list = node_get(root, "architectures");
    const char *path = folder ? strf("%s/model.safetensors", folder) : NULL;
    const SafeFile *f = path && access(path, R_OK) == 0 ? safe_open(path) : NULL;
    Heads *first = alloc((size_t)family->heads.n * sizeof *first);
    for (int i = 0; i < family->heads.n; i++) {
        first[i] = family->heads.at[i];
        first[i].tensors = template_line(first[i].tensors, values);
    }
    const Heads *is = first;
    for (int i = 0; list && list->kind == LIST && i < list->n; i++) {
        const char *name = list->at[i]->kind == SCALAR ? list->at[i]->text : "";
        const Heads *h = heads_of(first, first + family->heads.n, name, f);
        const char *missed = h ? missing(f, h) : NULL;
        if (!h)
            bad(list->at[i]->loc, "heads of other classes are written by hand, in the model file and in its section weights",
                "architectures: '%s' lacks %s, which the model file of type '%s' trains", name, family->what, family->type);
        else if (missed)
            bad(list->at[i]->loc, "import its config.json alone, and delete the lines of what is missing from the model file",
                "architectures: these weights of '%s' have no tensor '%s': the model file of type '%s' trains %s", name, missed,
                family->type, family->what);
        is = h ? h : is;
    }
    const Node *names = node_get(root, "id2label");
    bool classes = has_word(is->sets, "kind") || has_word(is->sets, "tags");
    for (const char *c = is->sets, *end; *c; c = end + strspn(end, " ")) {
        end = c + strcspn(c, " ");
        *PUSH(values) = (ConfigValue){strf("%.*s", (int)(end - c), c), "true"};
    }
    if (classes && names && names->kind == MAP && names->n == 1)
        bad(names->loc, "two classes at least, or a head by hand with MeanSquaredError",
            "id2label: one class, whose score is a number that is fitted: dpgen import does not do this");
    if (classes)
        *PUSH(values) = (ConfigValue){"C", strf("%d", names && names->kind == MAP ? names->n : 2)};
}
