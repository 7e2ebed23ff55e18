/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_shape.c: sums over rows, parts and axes.
 */
#include "answers.h"

static Answer broadcast_y(const Call *c, long i) { return exact(old(c, "a", i) + old(c, "b", i % of(c, "nb"))); }
static Answer mul_y(const Call *c, long i) { return exact(old(c, "a", i) * old(c, "b", i % of(c, "nb"))); }
static Answer mul_da(const Call *c, long i) { return exact(old(c, "dy", i) * old(c, "b", i % of(c, "nb"))); }

static Answer over_rows(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long j = i; j < of(c, "n"); j += of(c, "nb"))
        plus(&a, old(c, "dy", j) * (part_of(c, "a") ? old(c, "a", j) : 1));
    return a;
}

static Answer reduce_y(const Call *c, long i)
{
    Answer a = {0, 0};
    long inner = of(c, "inner"), mid = of(c, "mid");
    for (long j = 0; j < mid; j++)
        plus(&a, old(c, "x", (i / inner * mid + j) * inner + i % inner) * number_of(c, "factor"));
    return a;
}

static Answer reduce_dx(const Call *c, long i)
{
    long inner = of(c, "inner");
    return exact(old(c, "dy", i / inner / of(c, "mid") * inner + i % inner) * number_of(c, "factor"));
}

static const char *const concat_names[] = {"a", "b", "c", "d", "e", "f", "g", "i"};

static const char *const concat_sizes[] = {"na", "nb", "nc", "nd", "ne", "nf", "ng", "ni"};

/* How long parts 0 .. k-1 are together. */
static long concat_before(const Call *c, int k)
{
    long sum = 0;
    for (int j = 0; j < k; j++)
        sum += of(c, concat_sizes[j]);
    return sum;
}

static Answer concat_y(const Call *c, long i)
{
    long whole = concat_before(c, 8), j = i % whole;
    int k = 0;
    for (; j >= of(c, concat_sizes[k]); k++)
        j -= of(c, concat_sizes[k]);
    return exact(old(c, concat_names[k], i / whole * of(c, concat_sizes[k]) + j));
}

static Answer concat_part(const Call *c, long i, int k)
{
    long n = of(c, concat_sizes[k]);
    return exact(old(c, "dy", i / n * concat_before(c, 8) + concat_before(c, k) + i % n));
}

static Answer concat_da(const Call *c, long i) { return concat_part(c, i, 0); }
static Answer concat_db(const Call *c, long i) { return concat_part(c, i, 1); }
static Answer concat_dc(const Call *c, long i) { return concat_part(c, i, 2); }
static Answer concat_dd(const Call *c, long i) { return concat_part(c, i, 3); }
static Answer concat_de(const Call *c, long i) { return concat_part(c, i, 4); }
static Answer concat_df(const Call *c, long i) { return concat_part(c, i, 5); }
static Answer concat_dg(const Call *c, long i) { return concat_part(c, i, 6); }
static Answer concat_di(const Call *c, long i) { return concat_part(c, i, 7); }

static Answer slice_y(const Call *c, long i)
{
    long n = of(c, "count");
    return exact(old(c, "x", i / n * of(c, "whole") + of(c, "from") + i % n));
}

static Answer slice_dx(const Call *c, long i)
{
    long n = of(c, "count"), j = i % of(c, "whole") - of(c, "from");
    return exact(j >= 0 && j < n ? old(c, "dy", i / of(c, "whole") * n + j) : 0);
}

static Answer transpose_y(const Call *c, long i)
{
    long dim[] = {of(c, "d0"), of(c, "d1"), of(c, "d2"), of(c, "d3")};
    long axis[] = {of(c, "p0"), of(c, "p1"), of(c, "p2"), of(c, "p3")};
    long step[] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1}, at = 0;
    for (int j = 3; j >= 0; i /= dim[axis[j--]])
        at += i % dim[axis[j]] * step[axis[j]];
    return exact(old(c, "x", at));
}

#define BROADCAST "y=n a=n b=nb dy=n da=n db=nb"
#define REDUCE "y=outer*inner x=outer*mid*inner dx=outer*mid*inner dy=outer*inner onto=outer*mid*inner"
#define SLICE "y=outer*count x=outer*whole dx=outer*whole dy=outer*count"
#define CONCAT "a=outer*na b=outer*nb c=outer*nc d=outer*nd e=outer*ne f=outer*nf g=outer*ng i=outer*ni " \
    "da=outer*na db=outer*nb dc=outer*nc dd=outer*nd de=outer*ne df=outer*nf dg=outer*ng di=outer*ni " \
    "y=outer*na+outer*nb+outer*nc+outer*nd+outer*ne+outer*nf+outer*ng+outer*ni " \
    "dy=outer*na+outer*nb+outer*nc+outer*nd+outer*ne+outer*nf+outer*ng+outer*ni"

static const Known known[] = {
    {"add_broadcast_forward", "y", BROADCAST, broadcast_y, 0, 0},
    {"add_broadcast_backward", "db", BROADCAST, over_rows, 0, 0}, {"mul_forward", "y", BROADCAST, mul_y, 0, 0},
    {"mul_backward", "da", BROADCAST, mul_da, 0, 0}, {"mul_backward", "db", BROADCAST, over_rows, 0, 0},
    {"reduce_forward", "y", REDUCE, reduce_y, 0, 0}, {"reduce_backward", "dx", REDUCE, reduce_dx, 0, 0},
    {"concat_forward", "y", CONCAT, concat_y, 0, 0}, {"concat_backward", "da", CONCAT, concat_da, 0, 0},
    {"concat_backward", "db", CONCAT, concat_db, 0, 0}, {"concat_backward", "dc", CONCAT, concat_dc, 0, 0},
    {"concat_backward", "dd", CONCAT, concat_dd, 0, 0}, {"concat_backward", "de", CONCAT, concat_de, 0, 0},
    {"concat_backward", "df", CONCAT, concat_df, 0, 0}, {"concat_backward", "dg", CONCAT, concat_dg, 0, 0},
    {"concat_backward", "di", CONCAT, concat_di, 0, 0}, {"slice_forward", "y", SLICE, slice_y, 0, 0},
    {"slice_backward", "dx", SLICE, slice_dx, 0, 0},
    {"transpose_forward", "y", "y=d0*d1*d2*d3 x=d0*d1*d2*d3", transpose_y, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_shape = {known};
