/* SPDX-License-Identifier: Apache-2.0
 *
 * sbom.c: sbom.spdx.json, the list of a folder's files with their sums and licences.
 *
 * Source: System Package Data Exchange (SPDX) Specification, version 2.3, 2022; the JSON form.  The date is fixed and the
 * namespace is made of the sums, for a folder is a function of its inputs.  MANIFEST comes later and covers this file too.
 */
#include "emit.h"

/* What the tags of the files say; files that are no text of ours have none. */
static void licences(const char *name, const char *library, const char **concluded, const char **tag)
{
    static const struct { const char *name, *concluded, *tag; } other[] = {
        {"LICENSE", "Apache-2.0", "NONE"}, {"model.yaml", "NOASSERTION", "NOASSERTION"}, {"profile", EMIT_LICENCE, "NONE"}
    };
    bool copied = !strncmp(name, "rt/", 3) || !strncmp(name, "verify/", 7);
    *concluded = *tag = copied ? "Apache-2.0" : EMIT_LICENCE;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(name, other[i].name)) {
            *concluded = other[i].concluded;
            *tag = other[i].tag;
        }
    if (library && !strcmp(name, strf("%s.h", library)))
        *concluded = *tag = "Apache-2.0";
    if (library && !strcmp(name, strf("%s.c", library))) {
        *concluded = "Apache-2.0 AND " EMIT_LICENCE;
        *tag = "Apache-2.0\", \"" EMIT_LICENCE;
    }
}

ORDER(by_sha1, const OutFile *, strcmp((*x)->sha1, (*y)->sha1))

static const char *all_sums(const OutFile *file, int n)
{
    char *hex = alloc(65);
    Digest sum;
    digest_start(&sum);
    for (int i = 0; i < n; i++) {
        digest_add(&sum, file[i].hex, 64);
        digest_add(&sum, file[i].name, strlen(file[i].name) + 1);
    }
    digest_end(&sum, hex);
    return hex;
}

void emit_sbom(Out *o, const Plan *p, const char *library)
{
    int n;
    const OutFile *file = out_files(o, &n);
    char code[41];
    /* Section 7.9: the SHA-1 of the SHA-1 of all files, sorted. */
    const OutFile **list = alloc(sizeof *list * (size_t)n);
    char *all = alloc(40 * (size_t)n + 1);
    for (int i = 0; i < n; i++)
        list[i] = &file[i];
    SORT(list, n, by_sha1);
    for (int i = 0; i < n; i++)
        memcpy(all + 40 * i, list[i]->sha1, 40);
    sha1_of(all, 40 * (size_t)n, code);
    FILE *f = out_open(o, "sbom.spdx.json");
    fprintf(f, "{\"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": "
            "%s,\n \"documentNamespace\": \"https://spdx.org/spdxdocs/dpgen-%s\",\n \"creationInfo\": {\"created\": "
            "\"1970-01-" "01T00:00:00Z\", \"creators\": [\"Tool: dpgen-%s\"]},\n \"packages\": [{\"name\": "
            "%s, \"SPDXID\": \"SPDXRef-Package\", \"downloadLocation\": \"NOASSERTION\",\n   \"packageVerificationCode\": "
            "{\"packageVerificationCodeValue\": \"%s\",\n    \"packageVerificationCodeExcludedFiles\": [\"./MANIFEST\", "
            "\"./sbom.spdx.json\"]},\n   \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"NOASSERTION\", "
            "\"licenseInfoFromFiles\": [\"Apache-2.0\", \"%s\"],\n   \"copyrightText\": \"NOASSERTION\"}],\n \"files\": [",
            quote_json(p->g->name), all_sums(file, n), DPGEN_VERSION, quote_json(p->g->name), code, EMIT_LICENCE);
    for (int i = 0; i < n; i++) {
        const OutFile *x = &file[i];
        int number = i + 1;
        const char *concluded, *tag;
        licences(x->name, library, &concluded, &tag);
        fprintf(f, "%s\n  {\"fileName\": \"./%s\", \"SPDXID\": \"SPDXRef-File-%d\",\n"
                "   \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"%s\"},\n"
                "    {\"algorithm\": \"SHA1\", \"checksumValue\": \"%s\"}],\n"
                "   \"licenseConcluded\": \"%s\", \"licenseInfoInFiles\": [\"%s\"], \"copyrightText\": \"NOASSERTION\"}",
                number > 1 ? "," : "", x->name, number, x->hex, x->sha1, concluded, tag);
    }
    fprintf(f, "],\n \"relationships\": [\n  {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", "
            "\"relatedSpdxElement\": \"SPDXRef-Package\"}");
    for (int i = 0; i < n; i++)
        fprintf(f, ",\n  {\"spdxElementId\": \"SPDXRef-Package\", \"relationshipType\": \"CONTAINS\", \"relatedSpdxElement\": "
                "\"SPDXRef-File-%d\"}", i + 1);
    fprintf(f, "]}\n");
    out_close(o);
}
