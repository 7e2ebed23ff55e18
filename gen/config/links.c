/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c: what lies between devices, and between a device and its host: the sections hosts and links.
 *
 *     hosts: {count: 2, cores: 64, memory: 256GiB, offload: 64GiB}
 *     links:
 *       gpu-gpu: 300GB/s                                       every pair of the entry gpu
 *       gpu.3-gpu.4: {rate: 12GB/s, latency: 15us}             that pair alone
 *       gpu-host: {rate: 25GB/s, latency: 10us, duplex: half}
 *       host-host: 50GB/s                                      every pair of devices on two machines
 *
 * Which entry a pair takes is decided in cost/links.c, where pairs are priced.
 *
 * needs   Model.devices       fills   Model.links, hosts, cores, host_memory
 * fails   with bad(): names of no device, what is no rate
 */
#include "schema.h"

void model_hosts(Model *m, Node *node)
{
    typedef struct { int count, cores; Bytes memory, offload; } Hosts;
    static const Field fields[] = {
        { "count", read_count, offsetof(Hosts, count), 1, 65536, NULL },
        { "cores", read_count, offsetof(Hosts, cores), 1, 65536, NULL },
        { "memory", read_bytes, offsetof(Hosts, memory), 0, 0, NULL },
        { "offload", read_bytes, offsetof(Hosts, offload), 0, 0, NULL },
    };
    Hosts hosts = { 1, 0, 0, 0 };
    section(m, node, "hosts", fields, COUNT(fields), &hosts);
    if (hosts.memory && hosts.offload > hosts.memory)
        bad(node_get(node, "offload")->loc, NULL, "hosts.offload is more than hosts.memory");
    m->hosts = hosts.count;
    m->cores = hosts.cores;
    m->host_memory = hosts.offload ? hosts.offload : hosts.memory;
}

/* Without a section of devices they are processors, and their number is not known yet. */
static bool end_known(const Model *m, const char *name, size_t n)
{
    return m->devices.n ? device_known(m, name, n) : n == 3 && !strncmp(name, "cpu", n);
}

static void read_link(const Spot *pair, const Node *key)
{
    static const Field fields[] = {
        { "rate", read_rate, offsetof(LinkSpec, rate), 0, 0, NULL },
        { "latency", read_time, offsetof(LinkSpec, latency), 0, 0, NULL },
        { "duplex", read_second, offsetof(LinkSpec, half), 0, 0, "full half" },
    };
    LinkSpec link = { .latency = -1 };
    if (pair->value->kind == MAP)
        section(pair->m, pair->value, pair->path, fields, COUNT(fields), &link);
    else
        read_rate(spot_to(pair, &link.rate));
    const char *dash = strchr(key->text, '-');          /* names have none */
    bool host = dash && !strcmp(dash + 1, "host"), machines = host && !strncmp(key->text, "host-", 5)
        && !device_known(pair->m, "host", 4);
    if (!dash || (!machines && !end_known(pair->m, key->text, (size_t)(dash - key->text)))
        || (!host && !end_known(pair->m, dash + 1, strlen(dash + 1)))) {
        bad(key->loc, "write DEVICE-DEVICE or DEVICE-host, by the names in devices",
            "'%s' is no link between two devices", key->text);
        return;
    }
    if (pair->value->kind == MAP && !node_get(pair->value, "rate"))
        bad(pair->value->loc, "write {rate: 12GB/s, latency: 15us}", "%s has no 'rate'", pair->path);
    link.from = machines ? NULL : strf("%.*s", (int)(dash - key->text), key->text);
    link.to = host ? NULL : dash + 1;
    *PUSH(&pair->m->links) = link;
}

void model_links(Model *m, Node *node)
{
    Spot s = { m, NULL, "links", node, NULL };
    if (!node || is_word(node, "auto") || !want(&s, MAP, "'auto' or a map of links and rates"))
        return;
    for (int i = 0; i < node->n; i++)
        read_link(spot_key(&s, i, NULL, NULL), node->key[i]);
}
