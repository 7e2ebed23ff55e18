/* SPDX-License-Identifier: Apache-2.0
 *
 * tfevents.c: event files as TensorBoard reads them.
 *
 * A file is a row of records: the length as 8 bytes, a masked CRC-32C of these, the data, a masked CRC-32C of them; all little
 * endian (TensorFlow, "TFRecords format details").  The mask turns the sum right by 15 bits and adds 0xa282ead8, so that data
 * with sums inside have sums of their own.  CRC-32C is that of RFC 3720, appendix B.4: polynomial 0x1edc6f41, reflected.
 *
 * The data of a record are a message Event (tensorflow/core/util/event.proto) in the wire format of protocol buffers: a key
 * byte (field number * 8 + type), then the value.  Type 0 is a varint, 1 eight bytes, 2 a length and as many bytes, 5 four.
 *
 *   Event    1 wall_time double, 2 step int64, 3 file_version string, 5 summary Summary, 7 session_log SessionLog
 *   Summary  1 value Value, here one      Value  1 tag string, 2 simple_value float      SessionLog  1 status, START is 1
 */
#include "view.h"

enum { FIXED8 = 1, BYTES = 2, FIXED4 = 5, START = 1, ROOM = 512 };
typedef struct { unsigned char at[ROOM]; size_t n; } TfMessage;

/* CRC-32C */
static uint32_t crc_of(const void *data, size_t n)
{
    const unsigned char *at = data;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void put_byte(TfMessage *m, int byte)
{
    if (m->n == ROOM)
        die("a record of more than %d bytes", ROOM);
    m->at[m->n++] = (unsigned char)byte;
}

static void put_little(TfMessage *m, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put_byte(m, (int)(x >> 8 * i & 0xff));
}

static void put_varint(TfMessage *m, uint64_t x)
{
    for (; x > 127; x >>= 7)
        put_byte(m, (int)(x & 127) | 128);
    put_byte(m, (int)x);
}

static void put_number(TfMessage *m, int field, uint64_t x)
{
    put_byte(m, field << 3);
    put_varint(m, x);
}

static void put_double(TfMessage *m, int field, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_byte(m, field << 3 | FIXED8);
    put_little(m, bits, 8);
}

static void put_bytes(TfMessage *m, int field, const void *data, size_t n)
{
    put_byte(m, field << 3 | BYTES);
    put_varint(m, n);
    for (size_t i = 0; i < n; i++)
        put_byte(m, ((const unsigned char *)data)[i]);
}

static uint32_t masked(const void *data, size_t n)
{
    uint32_t crc = crc_of(data, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void write_record(FILE *f, const TfMessage *data)
{
    TfMessage length = {.n = 0}, sum = {.n = 0};
    put_little(&length, data->n, 8);
    put_little(&length, masked(length.at, 8), 4);
    put_little(&sum, masked(data->at, data->n), 4);
    fwrite(length.at, 1, length.n, f);
    fwrite(data->at, 1, data->n, f);
    fwrite(sum.at, 1, sum.n, f);
}

void tf_begin(FILE *f, double time)
{
    static const char version[] = "brain.Event:2";
    TfMessage event = {.n = 0};
    put_double(&event, 1, time);
    put_bytes(&event, 3, version, sizeof version - 1);
    write_record(f, &event);
}

void tf_start(FILE *f, double time, int64_t step)
{
    TfMessage event = {.n = 0}, session = {.n = 0};
    put_number(&session, 1, START);
    put_double(&event, 1, time);
    put_number(&event, 2, (uint64_t)step);
    put_bytes(&event, 7, session.at, session.n);
    write_record(f, &event);
}

void tf_scalar(FILE *f, double time, int64_t step, const char *tag, double value)
{
    TfMessage event = {.n = 0}, summary = {.n = 0}, one = {.n = 0};
    put_bytes(&one, 1, tag, strlen(tag));
    float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_byte(&one, 2 << 3 | FIXED4);
    put_little(&one, bits, 4);
    put_bytes(&summary, 1, one.at, one.n);
    put_double(&event, 1, time);
    put_number(&event, 2, (uint64_t)step);
    put_bytes(&event, 5, summary.at, summary.n);
    write_record(f, &event);
}
