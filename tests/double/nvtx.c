/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx.c: what a profiler would be to NVTX, as a library in NVTX_INJECTION64_PATH: each range to standard error, `range: ` and
 * its text, indented by two blanks a depth; `range: -` for an end that has no begin.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static _Thread_local int depth;

static int NVTX_API push(const char *text)
{
    fprintf(stderr, "range: %*s%s\n", 2 * depth, "", text);
    return depth++;
}

static int NVTX_API pop(void)
{
    if (depth == 0)
        fprintf(stderr, "range: -\n");
    return depth -= depth > 0;
}

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *calls = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned n = 0;
    if (!calls || !calls->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &n) || n <= NVTX_CBID_CORE_RangePop)
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
