/* SPDX-License-Identifier: Apache-2.0
 *
 * hf.h: config.json of published models: which of its fields a family of models reads, and the model file that it writes.
 */
#ifndef HF_H
#define HF_H
#include "model.h"

/* families.yaml says what the kinds are.  ONLY and those below have no value: name is NULL. */
typedef enum { INT, REAL, TEXT, FLAG, WORD, CAP, COUNT, EVERY, NUMBERS, ONLY, LIST_OF, SAME, ANY } FieldKind;
typedef VEC(const char *) Names;
typedef struct { double least, most; const char *text; } Range;     /* text NULL: any number */
typedef struct {
    FieldKind kind;
    Range range;
    const char *name, *words, *otherwise;   /* otherwise NULL: one of the keys has to be there */
    Names keys;                             /* in config.json; a.b is b of the object a; the last that is there holds */
} ConfigField;

/* A class of `architectures` by the end of its name: the values that are on, and the tensors that its weights have. */
typedef struct { const char *class, *sets, *tensors; } Heads;

typedef struct {
    const char *type;               /* model_type */
    const char *harmless;           /* keys of config.json that change nothing that is computed */
    const char *template, *tail;    /* files of gen/huggingface: the model; training, data and devices, NULL: in the first */
    const char *what;               /* the heads, for a message */
    VEC(ConfigField) fields;
    VEC(Heads) heads;               /* the first holds where nothing is said */
} Family;
const Family *family_of(const Node *root);      /* of the table, by model_type; err() if it is none */

/* Values of a template: a text by its name.  Off: "", 0 and false. */
typedef struct { const char *name, *text; } ConfigValue;
typedef VEC(ConfigValue) ConfigValues;
const char *value_get(const ConfigValues *v, const char *name);     /* NULL: there is none */
/* Lines with @name@ are filled in; `?name|rest` and `!name|rest` are lines for a value that is on, or off, and
 * may stand one behind the other; @?name|text@ and @!name|text@ are the same within a line, and $ in the text is the value.
 * lines: the template's, one for each that is written; NULL: nobody asks. */
void template_write(FILE *f, const char *template, const ConfigValues *v, Strs *lines);
bool has_word(const char *words, const char *word);                 /* words with a space between them */
const char *template_line(const char *line, const ConfigValues *v);

typedef struct { const Node *root; const Family *family; ConfigValues values; } Config;

/* blame.c: err() at the keys that this message is about, of a line of the model file that they make, or of an expression */
void blame_text(const Config *c, const char *text, const char *message) NORETURN;
void blame_keys(const Config *c, const Strs *line, const Text *text, Loc at, const char *message) NORETURN;

/* heads.c: values that say which head the model has, by the classes of `architectures`; bad() if these, or the weights in
 * folder, are of another one; folder NULL: no weights */
void heads_read(const Node *root, const Family *family, const char *folder, ConfigValues *values);
void import_kind(const char *path);         /* kind.c: ends dpgen if this is a file of another kind, which it names */
int import_command(int argc, char **argv);  /* dpgen import DIR -o model.yaml */
bool llmc_knows(const char *path);            /* llmc.c: a checkpoint of llm.c, by the end of its name */
int llmc_import(const char *path, const char *out);
int export_command(int argc, char **argv);  /* dpgen export CHECKPOINT --hf DIR */
#endif
