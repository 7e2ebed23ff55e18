/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: our parameters, gradients and losses against a stored reference.
 *
 *   compare REF.safetensors OURS.safetensors... TOL       parameters or gradients; ours may lie in several files
 *   compare --least SIZE REF OURS... TOL                  elements below SIZE are rounding: gradients that cancel
 *   compare --loss LOSSES.txt LOG.jsonl TOL               loss and gradient norm of every step
 *   compare --moved GRADS OURS.safetensors RATE TOL       gradients, from the weights after one step of gradient descent
 *
 * Tensors are compared by max |a-b| / max |a| over the tensor, so that an element that happens to be near zero
 * does not ask for digits that float32 cannot have.  Names and shapes must be the same on both sides, in any order;
 * the moments of a checkpoint, NAME.m, NAME.v and NAME.centre, are passed over.
 *
 * GRADS (tests/hf.awk) has a line a tensor: NAME NORM PRODUCT, its gradient's norm and its product with numbers that follow
 * from NAME.along.  A norm of -1 asks for the name alone, and NAME + joins its tensor to that of the next line.  The weights
 * before the step follow from NAME, as in tests/safe.c.
 *
 * The reader of safetensors here shares nothing with rt/, on purpose: u64 length, JSON of name -> {dtype, shape,
 * data_offsets}, bytes.  Only F32; names without escapes; a little-endian machine.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 256, MAXDIMS = 8, STEPS = 4096 };
static double least = 1e-12;            /* a tensor whose elements are smaller is measured by this */

typedef struct { char name[NAMES]; int ndim; long dim[MAXDIMS]; long n; const unsigned char *data; } Tensor;
typedef struct File File;
struct File { char *path; unsigned char *bytes; size_t size; Tensor *at; int n; File *next; };
typedef struct { const char *p, *end, *path; } Text;        /* a JSON header being read */
typedef struct { double loss, norm; int has_norm; } Row;
typedef struct { Row row[STEPS]; int n; } Losses;

static int passed, failed;

static void stop(const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    fputs("compare: ", stderr);
    vfprintf(stderr, form, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

static void *room(size_t n)
{
    void *at = calloc(n ? n : 1, 1);
    if (!at)
        stop("out of memory for %zu bytes", n);
    return at;
}

static void check(int ok, const char *form, ...)
{
    va_list ap;
    if (ok) {
        passed++;
        return;
    }
    failed++;
    va_start(ap, form);
    vfprintf(stderr, form, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* ---- safetensors --------------------------------------------------------------------------------------- */

static void blank(Text *t)
{
    while (t->p < t->end && isspace((unsigned char)*t->p))
        t->p++;
}

static int take(Text *t, char c)
{
    blank(t);
    if (t->p == t->end || *t->p != c)
        return 0;
    t->p++;
    return 1;
}

static void want(Text *t, char c)
{
    if (!take(t, c))
        stop("%s: header: '%c' expected %ld bytes before its end", t->path, c, (long)(t->end - t->p));
}

static void word(Text *t, char out[NAMES])
{
    int n = 0;
    want(t, '"');
    while (t->p < t->end && *t->p != '"') {
        if (*t->p == '\\' || n == NAMES - 1)
            stop("%s: header: a string with an escape, or over %d bytes", t->path, NAMES - 1);
        out[n++] = *t->p++;
    }
    out[n] = 0;
    want(t, '"');
}

static int numbers(Text *t, long *out, int most)
{
    int n = 0;
    want(t, '[');
    if (take(t, ']'))
        return 0;
    do {
        long v = 0;
        blank(t);
        if (n == most || t->p == t->end || !isdigit((unsigned char)*t->p))
            stop("%s: header: at most %d whole numbers expected in a list", t->path, most);
        while (t->p < t->end && isdigit((unsigned char)*t->p) && v < (1L << 50))
            v = v * 10 + (*t->p++ - '0');
        out[n++] = v;
    } while (take(t, ','));
    want(t, ']');
    return n;
}

static void metadata(Text *t)
{
    char key[NAMES];
    want(t, '{');
    if (take(t, '}'))
        return;
    do {
        word(t, key);
        want(t, ':');
        word(t, key);
    } while (take(t, ','));
    want(t, '}');
}

static void tensor(Text *t, File *f, Tensor *x, const unsigned char *data)
{
    char key[NAMES], type[NAMES] = "";
    long at[2] = {0, -1}, left = (long)(f->bytes + f->size - data);
    want(t, '{');
    do {
        word(t, key);
        want(t, ':');
        if (!strcmp(key, "dtype"))
            word(t, type);
        else if (!strcmp(key, "shape"))
            x->ndim = numbers(t, x->dim, MAXDIMS);
        else if (!strcmp(key, "data_offsets"))
            numbers(t, at, 2);
        else
            stop("%s: header: unknown key \"%s\" of %s", t->path, key, x->name);
    } while (take(t, ','));
    want(t, '}');
    x->n = 1;
    for (int i = 0; i < x->ndim; i++)
        x->n *= x->dim[i];
    if (strcmp(type, "F32"))
        stop("%s: %s is %s; only F32 is read", t->path, x->name, type);
    if (at[0] < 0 || at[1] > left || at[1] - at[0] != 4 * x->n)
        stop("%s: %s: bytes %ld .. %ld of %ld do not hold %ld floats", t->path, x->name, at[0], at[1], left, x->n);
    x->data = data + at[0];
}

static unsigned char *whole(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        stop("%s: cannot be opened", path);
    size_t n = 0, cap = 1 << 16;
    unsigned char *at = room(cap + 1);
    for (size_t got; (got = fread(at + n, 1, cap - n, f)) > 0; ) {
        n += got;
        if (n == cap) {
            at = realloc(at, 2 * cap + 1);
            if (!at)
                stop("out of memory for %s", path);
            cap *= 2;
        }
    }
    fclose(f);
    at[n] = 0;
    *size = n;
    return at;
}

static File *open_file(char *path)
{
    File *f = room(sizeof *f);
    uint64_t length = 0;
    f->path = path;
    f->bytes = whole(path, &f->size);
    if (f->size >= 8)
        memcpy(&length, f->bytes, 8);
    if (f->size < 8 || length > f->size - 8)
        stop("%s: %zu bytes are no safetensors file", path, f->size);
    const unsigned char *data = f->bytes + 8 + length;
    Text t = {(char *)f->bytes + 8, (const char *)data, path};
    want(&t, '{');
    if (take(&t, '}'))
        return f;
    do {
        char name[NAMES];
        word(&t, name);
        want(&t, ':');
        if (!strcmp(name, "__metadata__")) {
            metadata(&t);
            continue;
        }
        f->at = realloc(f->at, (size_t)(f->n + 1) * sizeof *f->at);
        if (!f->at)
            stop("out of memory for %s", path);
        Tensor *x = memset(&f->at[f->n++], 0, sizeof *x);
        strcpy(x->name, name);
        tensor(&t, f, x, data);
    } while (take(&t, ','));
    want(&t, '}');
    return f;
}

/* In one of the files of a list. */
static const Tensor *find(const File *f, const char *name)
{
    for (; f; f = f->next)
        for (int i = 0; i < f->n; i++)
            if (!strcmp(f->at[i].name, name))
                return &f->at[i];
    return NULL;
}

static double value(const Tensor *x, long i)
{
    float v;
    memcpy(&v, x->data + 4 * i, 4);     /* offsets need not be aligned */
    return v;
}

/* ---- comparing ------------------------------------------------------------------------------------------- */

static int same_shape(const Tensor *a, const Tensor *b)
{
    return a->ndim == b->ndim && !memcmp(a->dim, b->dim, (size_t)a->ndim * sizeof *a->dim);
}

/* Largest difference over the largest element; a NaN on either side is infinite. */
static double apart(const Tensor *ref, const Tensor *ours)
{
    double most = 0, size = least;
    for (long i = 0; i < ref->n; i++) {
        double a = value(ref, i), b = value(ours, i);
        if (!isfinite(a) || !isfinite(b))
            return INFINITY;
        most = fmax(most, fabs(a - b));
        size = fmax(size, fabs(a));
    }
    return most / size;
}

static int is_moment(const File *ref, const char *name)
{
    char stem[NAMES];
    const char *dot = strrchr(name, '.');
    if (!dot || (strcmp(dot, ".m") && strcmp(dot, ".v") && strcmp(dot, ".centre")))
        return 0;
    memcpy(stem, name, (size_t)(dot - name));
    stem[dot - name] = 0;
    return find(ref, stem) != NULL;
}

/* What ours has and the reference does not, or has twice. */
static void strangers(const File *ref, const File *ours)
{
    for (const File *f = ours; f; f = f->next)
        for (int i = 0; i < f->n; i++) {
            const Tensor *x = &f->at[i];
            if (find(ours, x->name) != x)
                check(0, "%s: %s is there twice", f->path, x->name);
            else if (!find(ref, x->name) && !is_moment(ref, x->name))
                check(0, "%s: %s is not in %s", f->path, x->name, ref->path);
        }
}

static void tensors(const File *ref, const File *ours, double tol)
{
    double most = -1;
    const char *name = "";
    for (int i = 0; i < ref->n; i++) {
        const Tensor *a = &ref->at[i], *b = find(ours, a->name);
        if (!b) {
            check(0, "%s: %s is missing", ours->path, a->name);
        } else if (!same_shape(a, b)) {
            check(0, "%s: %s has another shape than in %s", ours->path, a->name, ref->path);
        } else {
            double d = apart(a, b);
            check(d <= tol, "%s: %s differs by %.3g, allowed %.3g", ours->path, a->name, d, tol);
            name = d > most ? a->name : name;
            most = fmax(most, d);
        }
    }
    strangers(ref, ours);
    if (!ref->n)
        check(0, "%s: no tensors", ref->path);
    if (most >= 0)
        printf("%s: worst %s, %.3g\n", ours->path, name, most);
}

/* ---- losses ----------------------------------------------------------------------------------------------- */

/* "step loss norm lr" a line, behind a head. */
static Losses *losses(const char *path)
{
    Losses *l = room(sizeof *l);
    size_t size;
    char *text = (char *)whole(path, &size);
    if (strncmp(text, "# step loss norm lr\n", 20))
        stop("%s: the first line does not name the columns", path);
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        int step;
        Row r = {.has_norm = 1};
        if (sscanf(line + 1, "%d %lf %lf", &step, &r.loss, &r.norm) != 3 || step != l->n + 1 || l->n == STEPS)
            stop("%s: step %d expected in line %d", path, l->n + 1, l->n + 2);
        l->row[l->n++] = r;
    }
    free(text);
    return l;
}

/* The number behind "key": in a line of JSON. */
static int number(const char *line, const char *key, double *out)
{
    char mark[64], *end;
    snprintf(mark, sizeof mark, "\"%s\":", key);
    const char *at = strstr(line, mark);
    if (!at)
        return 0;
    at += strlen(mark);
    *out = strtod(at, &end);
    return end != at;
}

/* One object a line; evaluations and checkpoints are other events. */
static Losses *log_file(const char *path)
{
    Losses *l = room(sizeof *l);
    size_t size;
    char *text = (char *)whole(path, &size);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        Row r = {0};
        double step;
        if (!strstr(line, "\"event\":\"step\""))
            continue;
        if (l->n == STEPS || !number(line, "step", &step) || step != l->n + 1 || !number(line, "loss", &r.loss))
            stop("%s: loss of step %d expected: %.60s", path, l->n + 1, line);
        r.has_norm = number(line, "norm", &r.norm);
        l->row[l->n++] = r;
    }
    free(text);
    return l;
}

static void one(const char *path, int step, const char *what, double a, double b, double tol, double *most)
{
    double d = isfinite(b) ? fabs(a - b) / fmax(fabs(a), 1e-12) : INFINITY;
    check(d <= tol, "%s: step %d: %s %.9g, reference %.9g: differs by %.3g, allowed %.3g", path, step, what, b, a, d,
          tol);
    *most = fmax(*most, d);
}

static void compare_losses(const char *ref, const char *log, double tol)
{
    Losses *a = losses(ref), *b = log_file(log);
    double loss = 0, norm = 0;
    int norms = 0;
    check(a->n == b->n, "%s: %d steps, reference %d", log, b->n, a->n);
    for (int i = 0; i < a->n && i < b->n; i++) {
        one(log, i + 1, "loss", a->row[i].loss, b->row[i].loss, tol, &loss);
        norms += b->row[i].has_norm;
        if (b->row[i].has_norm)
            one(log, i + 1, "norm", a->row[i].norm, b->row[i].norm, tol, &norm);
    }
    printf("%s: %d steps, worst loss %.3g, ", log, b->n, loss);
    printf(norms ? "worst norm %.3g\n" : "norms not logged\n", norm);
    free(a);
    free(b);
}

/* ---- gradients that are told by two numbers ----------------------------------------------------------------- */

/* Number i of a tensor of tests/safe.c. */
static double drawn(const char *name, int is_norm, long i)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    uint64_t x = ((hash & 0xffffffff) + (uint64_t)i) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    double k = (double)(x >> 57) - 64;
    return (is_norm ? 2 * k + 256 : k) / 256;
}

/* Adds a gradient to both of its numbers. */
static void add_moved(const Tensor *x, double rate, double *squares, double *sum)
{
    char along[NAMES + 8];
    size_t length = strlen(x->name);
    int is_norm = x->ndim == 1 && length > 7 && !strcmp(x->name + length - 7, ".weight");
    snprintf(along, sizeof along, "%s.along", x->name);
    for (long i = 0; i < x->n; i++) {
        double g = (drawn(x->name, is_norm, i) - value(x, i)) / rate;
        *squares += g * g;
        *sum += g * drawn(along, 0, i);
    }
}

static void moved(const char *grads, File *ours, double rate, double tol)
{
    size_t size;
    char *text = (char *)whole(grads, &size), name[NAMES], told[64];
    double norm, product, most = 0, worst = 0, squares = 0, sum = 0;
    int n = 0, together = 1;
    for (char *line = text; sscanf(line, "%255s %63s", name, told) == 2; line = strchr(line, '\n') + 1)
        most = fmax(most, strtod(told, NULL));
    for (char *line = text; sscanf(line, "%255s %63s", name, told) == 2; line = strchr(line, '\n') + 1, n++) {
        const Tensor *x = find(ours, name);
        check(x != NULL, "%s: %s is missing", ours->path, name);
        norm = strtod(told, NULL);
        if (x && norm >= 0)         /* else no weights of a file */
            add_moved(x, rate, &squares, &sum);
        together += *told == '+';
        if (norm < 0 || *told == '+')
            continue;
        if (sscanf(line, "%*s %*s %lf", &product) != 1)
            stop("%s: %s has no product", grads, name);
        double d = fmax(fabs(sqrt(squares) - norm), 4 * fabs(sum - product)) / fmax(norm, 1e-4 * most * sqrt(together));
        check(d <= tol, "%s: %s: norm %.9g, product %.9g, reference %.9g, %.9g", ours->path, name, sqrt(squares), sum, norm,
              product);
        worst = fmax(worst, d);
        squares = sum = 0;
        together = 1;
    }
    check(n == ours->n, "%s: %d tensors, reference %d", ours->path, ours->n, n);
    printf("%s: %d tensors, worst %.3g\n", ours->path, n, worst);
    free(text);
}

/* ---- main -------------------------------------------------------------------------------------------------- */

static void shut(File *f)
{
    while (f) {
        File *next = f->next;
        free(f->bytes);
        free(f->at);
        free(f);
        f = next;
    }
}

static double limit(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0))
        stop("a tolerance such as 1e-4 expected, not %s", text);
    return v;
}

int main(int argc, char **argv)
{
    if (argc >= 6 && !strcmp(argv[1], "--least")) {
        least = limit(argv[2]);
        argc -= 2;
        argv += 2;
    }
    if (argc == 5 && !strcmp(argv[1], "--loss")) {
        compare_losses(argv[2], argv[3], limit(argv[4]));
    } else if (argc == 6 && !strcmp(argv[1], "--moved")) {
        File *ours = open_file(argv[3]);
        moved(argv[2], ours, limit(argv[4]), limit(argv[5]));
        shut(ours);
    } else if (argc >= 4 && argv[1][0] != '-') {
        double tol = limit(argv[argc - 1]);
        File *ref = open_file(argv[1]), *ours = NULL;
        for (int i = argc - 2; i >= 2; i--) {
            File *f = open_file(argv[i]);
            f->next = ours;
            ours = f;
        }
        tensors(ref, ours, tol);
        shut(ref);
        shut(ours);
    } else {
        stop("usage: compare [--least SIZE] REF OURS... TOL | compare --loss LOSSES LOG TOL");
    }
    printf("compare: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
