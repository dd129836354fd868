/* SPDX-License-Identifier: Apache-2.0 */
/* getenv, replaced: PyTorch reads its allocator settings merged with the backend that gml-run wants.
 *
 * PyTorch reads PYTORCH_CUDA_ALLOC_CONF, else PYTORCH_ALLOC_CONF, when its library loads; scripts set
 * either just before. It reads them again when its settings are first needed, and then only compares the backend with
 * the allocator in use, which may be one that the program plugged in meanwhile: once PyTorch has had its backend and
 * CUDA is in use, ours is left out. The environment itself is never changed: a child inherits what the user wrote.
 * These functions are called before libc is ready and from inside other allocators. So: no dlsym, no
 * malloc, no lock, no thread-local storage; a merged text is built once per distinct value and lives
 * for ever, as the callers of getenv expect. */
#include "interpose/torch_env.h"

#include "base/config.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#define TEXT_BYTES 1024
#define TEXT_SLOTS 16

__attribute__((visibility("default"))) char *getenv(const char *name);
__attribute__((visibility("default"))) char *secure_getenv(const char *name);

enum { SLOT_FREE, SLOT_BUSY, SLOT_READY };

static struct {
    _Atomic int asked;
    _Atomic int dropped;
    _Atomic int decided; /* PyTorch has had its backend */
    struct {
        _Atomic int state;
        char text[TEXT_BYTES];
    } slots[TEXT_SLOTS];
} torch_env;

/* ---- which backend ---- */

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

gml_torch_backend gml_torch_env_backend(void)
{
    if (!gml_config_is_set(GML_OPTION_ALLOCATOR))
        return GML_TORCH_UNTOUCHED;
    const char *allocator = gml_config_text(GML_OPTION_ALLOCATOR);
    const char *intercept = gml_config_text(GML_OPTION_INTERCEPT);
    if (is(allocator, "native"))
        return GML_TORCH_NATIVE;
    if (is(allocator, "expandable"))
        return GML_TORCH_EXPANDABLE;
    if (is(allocator, "cuda-async"))
        return GML_TORCH_ASYNC;
    if (is(allocator, "raw"))
        return GML_TORCH_UNCACHED;
    if (is(allocator, "observe") || is(intercept, "segments"))
        return GML_TORCH_UNTOUCHED;
    return is(intercept, "uncached") ? GML_TORCH_UNCACHED : GML_TORCH_ASYNC;
}

/* ---- merging ---- */

/* End of the setting that begins at `text`: the next comma outside brackets. */
static const char *setting_end(const char *text)
{
    int depth = 0;
    for (; *text != '\0' && (*text != ',' || depth > 0); text++) {
        if (*text == '[')
            depth++;
        else if (*text == ']')
            depth--;
    }
    return text;
}

static bool key_is(const char *setting, size_t length, const char *key)
{
    size_t key_length = strlen(key);
    return length >= key_length && strncmp(setting, key, key_length) == 0 &&
           (length == key_length || setting[key_length] == ':' || setting[key_length] == ' ');
}

static bool contains(const char *setting, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    for (size_t i = 0; i + word_length <= length; i++)
        if (strncmp(setting + i, word, word_length) == 0)
            return true;
    return false;
}

static const char *backend_setting(gml_torch_backend backend)
{
    switch (backend) {
    case GML_TORCH_ASYNC:
        return "backend:cudaMallocAsync";
    case GML_TORCH_EXPANDABLE:
        return "expandable_segments:True";
    case GML_TORCH_NATIVE:
    case GML_TORCH_UNCACHED:
        return "backend:native";
    case GML_TORCH_UNTOUCHED:
        break;
    }
    return "";
}

/* Whether a setting gives way to ours, and whether the user loses something by that. */
static bool gives_way(const char *setting, size_t length, gml_torch_backend backend, bool *out_dropped)
{
    bool wants_async = backend == GML_TORCH_ASYNC;
    if (key_is(setting, length, "backend")) {
        *out_dropped = *out_dropped || contains(setting, length, "cudaMallocAsync") != wants_async;
        return true;
    }
    if (key_is(setting, length, "expandable_segments")) {
        bool on = contains(setting, length, "True") || contains(setting, length, "true");
        *out_dropped = *out_dropped || on != (backend == GML_TORCH_EXPANDABLE);
        return true;
    }
    return false;
}

static bool append(char *out, size_t capacity, size_t *length, const char *text, size_t text_length)
{
    size_t comma = *length > 0;
    if (*length + comma + text_length + 1 > capacity)
        return false;
    if (comma)
        out[(*length)++] = ',';
    memcpy(out + *length, text, text_length);
    *length += text_length;
    out[*length] = '\0';
    return true;
}

/* Merges the user's settings ("key:value,key:[a:b,c:d]"; NULL is none) with a backend. Returns false when `out` is too
 * small. *out_dropped: a setting of the user's that means another backend went. */
static bool merge(const char *user, gml_torch_backend backend, char *out, size_t capacity, bool *out_dropped)
{
    size_t length = 0;
    out[0] = '\0';
    *out_dropped = false;
    for (const char *at = user == NULL ? "" : user; *at != '\0';) {
        const char *end = setting_end(at);
        while (at < end && *at == ' ')
            at++;
        size_t size = (size_t)(end - at);
        if (size > 0 && !gives_way(at, size, backend, out_dropped) &&
            !append(out, capacity, &length, at, size))
            return false;
        at = *end == ',' ? end + 1 : end;
    }
    const char *own = backend_setting(backend);
    const bool left_out = atomic_load(&torch_env.decided) && strncmp(own, "backend:", strlen("backend:")) == 0;
    return left_out || append(out, capacity, &length, own, strlen(own));
}

/* The kept copy of a text; NULL when there is no room for one more. */
static char *keep(const char *text)
{
    for (size_t i = 0; i < TEXT_SLOTS; i++) {
        int state = SLOT_FREE;
        if (atomic_compare_exchange_strong(&torch_env.slots[i].state, &state, SLOT_BUSY)) {
            memcpy(torch_env.slots[i].text, text, strlen(text) + 1);
            atomic_store(&torch_env.slots[i].state, SLOT_READY);
            return torch_env.slots[i].text;
        }
        /* A slot that another thread is filling is passed by: at worst the text is kept twice. */
        if (state == SLOT_READY && is(torch_env.slots[i].text, text))
            return torch_env.slots[i].text;
    }
    return NULL;
}

static const char *allocator_settings(const char *user)
{
    char merged[TEXT_BYTES];
    bool dropped = false;
    gml_torch_backend backend = gml_torch_env_backend();
    atomic_store(&torch_env.asked, 1);
    if (backend == GML_TORCH_UNTOUCHED || !merge(user, backend, merged, sizeof merged, &dropped))
        return user;
    if (dropped)
        atomic_store(&torch_env.dropped, 1);
    if (merged[0] == '\0')
        return NULL; /* nothing is set */
    const char *kept = keep(merged);
    return kept != NULL ? kept : user;
}

/* ---- getenv ---- */

static const char *answer(const char *name)
{
    const char *value = gml_config_environment(name);
    if (strncmp(name, "PYTORCH_", strlen("PYTORCH_")) != 0)
        return value;
    if (is(name, "PYTORCH_CUDA_ALLOC_CONF")) {
        /* The first of the two hides the other from PyTorch, so what we answer for it has both. */
        value = value != NULL ? value : gml_config_environment("PYTORCH_ALLOC_CONF");
        const char *settings = allocator_settings(value);
        return settings == value ? gml_config_environment(name) : settings;
    }
    if (is(name, "PYTORCH_ALLOC_CONF"))
        return allocator_settings(value);
    if (is(name, "PYTORCH_NO_CUDA_MEMORY_CACHING") && value == NULL &&
        gml_torch_env_backend() == GML_TORCH_UNCACHED)
        return "1";
    return value;
}

char *getenv(const char *name)
{
    const char *value = answer(name);
    char *result = NULL;
    memcpy(&result, &value, sizeof result); /* getenv's type takes the const away */
    return result;
}

char *secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) != 0 ? NULL : getenv(name);
}

void gml_torch_env_in_use(void)
{
    if (atomic_load(&torch_env.asked))
        atomic_store(&torch_env.decided, 1);
}

bool gml_torch_env_asked(void)
{
    return atomic_load(&torch_env.asked) != 0;
}

bool gml_torch_env_dropped(void)
{
    return atomic_load(&torch_env.dropped) != 0;
}
