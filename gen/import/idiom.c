/* SPDX-License-Identifier: Apache-2.0
 *
 * idiom.c: operators that a graph has in parts: Silu, HardSigmoid, HardSwish and both forms of Gelu.
 *
 * A product is taken apart to one number and its factors.  A Gelu is half of x times 1 + erf(x/sqrt 2), or times 1 +
 * tanh(sqrt(2/pi) (x + 0.044715 x^3)), in whatever order they are multiplied.  The lines of the parts stay; nobody reads them
 * then, and write.c leaves them out.
 */
#include "net.h"
#include <math.h>

typedef struct { double number; int factor[8], n; } Product;

static bool is_line(const Made *l, const char *op)
{
    return l && !strcmp(l->op, op);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static void add_factors(const Net *g, int value, Product *p, int depth)
{
    const Made *l = net_made(g, value);
    bool power = is_line(l, "?Pow") && (l->factor == 2 || l->factor == 3);
    if (depth > 0 && is_line(l, "Scale")) {
        p->number *= l->factor;
        add_factors(g, l->in.at[0], p, depth - 1);
    } else if (depth > 0 && (is_line(l, "Mul") || power)) {
        for (int i = 0; i < (power ? (int)l->factor : 2); i++)
            add_factors(g, l->in.at[power ? 0 : i], p, depth - 1);
    } else if (p->n < 8) {
        p->factor[p->n++] = value;
    } else {
        p->number = NAN;
    }
}

static Product product_of(const Net *g, int value)
{
    Product p = {.number = 1};
    add_factors(g, value, &p, 6);
    return p;
}

/* Takes the factors of b out of a; false: they are not all there. */
static bool divide(Product *a, const Product *b)
{
    for (int i = 0; i < b->n; i++) {
        int k = 0;
        while (k < a->n && a->factor[k] != b->factor[i])
            k++;
        if (k == a->n)
            return false;
        a->factor[k] = a->factor[--a->n];
    }
    a->number /= b->number;
    return true;
}

/* x of erf(x/sqrt 2), or of tanh(sqrt(2/pi) (x + 0.044715 x^3)); -1: it is neither */
static int inside(const Net *g, const Made *l)
{
    const Made *scaled = net_made(g, l->in.at[0]);
    if (!is_line(scaled, "Scale"))
        return -1;
    if (is_line(l, "?Erf"))
        return near(scaled->factor, 0.70710678) ? scaled->in.at[0] : -1;
    const Made *sum = net_made(g, scaled->in.at[0]);
    if (!near(scaled->factor, 0.79788456) || !is_line(sum, "Add"))
        return -1;
    for (int i = 0; i < 2; i++) {
        Product cube = product_of(g, sum->in.at[1 - i]), x = product_of(g, sum->in.at[i]);
        if (divide(&cube, &x) && divide(&cube, &x) && divide(&cube, &x) && cube.n == 0 && near(cube.number, 0.044715))
            return sum->in.at[i];
    }
    return -1;
}

static int gelu(Net *g, int value)
{
    Product all = product_of(g, value);
    for (int i = 0; i < all.n; i++) {
        const Made *plus = net_made(g, all.factor[i]), *l = is_line(plus, "?Plus") ? net_made(g, plus->in.at[0]) : NULL;
        if (!l || plus->factor != 1 || (!is_line(l, "?Erf") && !is_line(l, "Tanh")))
            continue;
        int x = inside(g, l);
        Product rest = all, of = product_of(g, x < 0 ? value : x);
        rest.factor[i] = rest.factor[--rest.n];
        if (x >= 0 && divide(&rest, &of) && rest.n == 0 && near(rest.number, 0.5))
            return ops_unary(g, "Gelu", is_line(l, "?Erf") ? "" : ", approximate: tanh", x);
    }
    return -1;
}

/* A sixth of x + 3 between 0 and 6: HardSigmoid; times x: HardSwish */
static int hard(Net *g, int value)
{
    Product all = product_of(g, value);
    for (int i = 0; i < all.n && all.n <= 2 && near(all.number, 1.0 / 6); i++) {
        const Made *clip = net_made(g, all.factor[i]), *plus = is_line(clip, "Clip") ? net_made(g, clip->in.at[0]) : NULL;
        if (!is_line(plus, "?Plus") || plus->factor != 3 || strcmp(clip->attributes, ", min: 0, max: 6"))
            continue;
        int x = plus->in.at[0];
        if (all.n == 1 || all.factor[1 - i] == x)
            return ops_unary(g, all.n == 1 ? "HardSigmoid" : "HardSwish", "", x);
    }
    return -1;
}

int idiom_of_product(Net *g, int value)
{
    static const struct { const char *inner, *whole; } gates[] = {{"Sigmoid", "Silu"}, {"HardSigmoid", "HardSwish"}};
    const Made *l = net_made(g, value);
    for (int i = 0; is_line(l, "Mul") && i < 4; i++) {
        int x = l->in.at[i % 2], gate = l->in.at[1 - i % 2];
        const Made *of = net_made(g, gate);
        if (is_line(of, gates[i / 2].inner) && of->in.at[0] == x)
            return ops_unary(g, gates[i / 2].whole, "", x);
    }
    int y = hard(g, value);
    return y >= 0 ? y : gelu(g, value);
}
