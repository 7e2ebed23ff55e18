/* SPDX-License-Identifier: Apache-2.0
 *
 * hf.h: config.json of published models: which of its fields a family of models reads, and the model file that it writes.
 */
#ifndef HF_H
#define HF_H
#include "model.h"

/* A field gives the value `name` of a template.  key: in config.json; a.b is b of the object a; NULL: none.  otherwise: where
 * the key is absent or null; an expression over the values before it, or a word; NULL: it has to be there.  A name that has
 * its value already keeps it where the key is absent. */
typedef enum {
    INT, REAL,
    TEXT,           /* a whole number, or `otherwise` as it stands: an expression of the model file */
    FLAG,           /* true or false */
    WORD,           /* one of words, JSON:value; */
    ONLY,           /* one of words, or absent: another one would change what is computed, and nothing here does it */
    LIST_OF,        /* a list, each element one of words */
    EVERY,          /* a list with an element a layer: an expression that is 0 in layer i where it is the second word, else 1 */
    CAP,            /* a number; null is 0, where absence is `otherwise` */
    SAME,           /* the value that `otherwise` names */
    LET,            /* `otherwise` as a line of a template */
    COUNT_OF,       /* how many keys the object has */
    ANY             /* whatever it is: another key says that it is not used */
} FieldKind;
typedef struct { const char *key; FieldKind kind; const char *name, *otherwise, *words; } ConfigField;

typedef struct {
    const char *type;               /* model_type */
    const char *template, *tail;    /* files of gen/huggingface: the model; training, data and devices, NULL: in the first */
    const ConfigField *fields;
} Family;
typedef struct { const char *what, *types; } Missing;      /* what dpgen has not, and these model types need */
extern const Family family_decoders[], family_encoders[];       /* of one template each; they end with a NULL type */
extern const Family *const families[];
extern const Missing family_missing[];           /* ends with a NULL what */
extern const ConfigField field_common[];    /* of every family */
extern const char *const field_harmless[];  /* keys that change nothing that is computed */

/* Values of a template: a text by its name.  Off: "", 0 and false. */
typedef struct { const char *name, *text; } ConfigValue;
typedef VEC(ConfigValue) ConfigValues;
const char *value_get(const ConfigValues *v, const char *name);     /* NULL: there is none */
bool value_on(const ConfigValues *v, const char *name);
/* Lines with @name@ are filled in; `?name|rest` and `!name|rest` are lines for a value that is on, or off, and
 * may stand one behind the other; @?name|text@ and @!name|text@ are the same within a line, and $ in the text is the value. */
void template_write(FILE *f, const char *template, const ConfigValues *v);
bool has_word(const char *words, const char *word);                 /* words with a space between them */
const char *template_line(const char *line, const ConfigValues *v);

/* heads.c: values that say which head the model has, by the classes of `architectures`; bad() if these, or the weights in
 * folder, are of another one; folder NULL: no weights */
void heads_read(const Node *root, const Family *family, const char *folder, ConfigValues *values);
void import_kind(const char *path);         /* kind.c: ends dpgen if this is a file of another kind, which it names */
int import_command(int argc, char **argv);  /* dpgen import DIR -o model.yaml */
bool llmc_knows(const char *path);            /* llmc.c: a checkpoint of llm.c, by the end of its name */
int llmc_import(const char *path, const char *out);
int export_command(int argc, char **argv);  /* dpgen export CHECKPOINT --hf DIR */
#endif
