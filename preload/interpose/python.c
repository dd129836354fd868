/* SPDX-License-Identifier: Apache-2.0 */
/* Reads this thread's own Python frames. */
#define _GNU_SOURCE
#include "interpose/python.h"

#include "os/os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The same in all versions that are known. */
#define OBJECT_TYPE 8
#define VAR_SIZE 16
#define CODE_FILE 112
#define CODE_FUNCTION 128 /* the qualified name */
#define TEXT_LENGTH 16
#define LONGEST_TEXT 4096
#define MOST_SKIPPED 16 /* frames in a row that belong to no code: the interpreter's own */

static const gml_python_layout layouts[] = {
    {.minor = 11, .indirect = true, .state_frame = 56, .c_frame = 8, .code = 32, .previous = 48, .instruction = 56,
     .first_instruction = 184, .text = 48},
    {.minor = 12, .indirect = true, .state_frame = 56, .c_frame = 0, .code = 0, .previous = 8, .instruction = 56,
     .first_instruction = 192, .text = 40},
    {.minor = 13, .indirect = false, .state_frame = 72, .code = 0, .previous = 8, .instruction = 56,
     .first_instruction = 200, .text = 40},
    {.minor = 14, .indirect = false, .state_frame = 72, .code = 0, .previous = 8, .instruction = 56,
     .first_instruction = 208, .text = 40},
};

#define CODE_TAGS 7u /* low bits of a frame's code, which 3.14 uses for itself */

/* What 3.13 and later tell debuggers of themselves, at the start of _PyRuntime. */
typedef struct told_layout {
    char cookie[8];
    uint64_t version;
    uint64_t free_threaded;
} told_layout;

static void *symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* Builds without a GIL lay their objects out otherwise. */
static bool has_gil(void)
{
    const told_layout *told = symbol("_PyRuntime");
    return told == NULL || memcmp(told->cookie, "xdebugpy", sizeof told->cookie) != 0 || told->free_threaded == 0;
}

void gml_python_find(gml_python *python, char *status, size_t capacity)
{
    *python = (gml_python){0};
    const unsigned long *version = symbol("Py_Version"); /* since 3.11 */
    void *this_thread = symbol("PyGILState_GetThisThreadState");
    void *line_of = symbol("PyCode_Addr2Line");
    void *is_ending = symbol("Py_IsFinalizing"); /* since 3.13 */
    if (is_ending == NULL)
        is_ending = symbol("_Py_IsFinalizing");
    python->code_type = symbol("PyCode_Type");
    python->text_type = symbol("PyUnicode_Type");
    if (version == NULL) {
        (void)snprintf(status, capacity, "%s", this_thread == NULL ? "the program is not Python"
                                                                   : "Python before 3.11 is not known");
        return;
    }
    unsigned major = (unsigned)(*version >> 24), minor = (unsigned)(*version >> 16) & 0xff;
    if (!has_gil()) {
        (void)snprintf(status, capacity, "Python %u.%u without a GIL is not known", major, minor);
        return;
    }
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (major == 3 && layouts[i].minor == minor && this_thread != NULL && line_of != NULL &&
            is_ending != NULL && python->code_type != NULL && python->text_type != NULL)
            python->layout = &layouts[i];
    memcpy(&python->this_thread, &this_thread, sizeof this_thread);
    memcpy(&python->line_of, &line_of, sizeof line_of);
    memcpy(&python->is_ending, &is_ending, sizeof is_ending);
    (void)snprintf(status, capacity, python->layout != NULL ? "Python %u.%u" : "Python %u.%u is not known", major,
                   minor);
}

/* ---- reading ---- */

/* The main thread is who ends the interpreter, which frees the states and frames of all others, under way or not:
 * what they read may be gone by now. */
static bool ends_python(void)
{
    static _Thread_local signed char known __attribute__((tls_model("initial-exec")));
    if (known == 0)
        known = gml_os_is_main_thread() ? 1 : -1;
    return known > 0;
}

static bool load(const gml_python *python, uintptr_t address, void *out, size_t bytes)
{
    if (address < 4096)
        return false;
    if (!python->trusted || !ends_python())
        return gml_os_read_memory(address, out, bytes);
    memcpy(out, (const void *)address, bytes);
    return true;
}

static bool load_word(const gml_python *python, uintptr_t address, uintptr_t *out)
{
    return load(python, address, out, sizeof *out);
}

static bool has_type(const gml_python *python, uintptr_t object, const void *type)
{
    uintptr_t found = 0;
    return (object & 7) == 0 && load_word(python, object + OBJECT_TYPE, &found) && found == (uintptr_t)type;
}

/* From the frame at `address` outwards to the first one that runs code. */
static bool settle(gml_python *python, uintptr_t address, gml_python_frame *frame)
{
    const gml_python_layout *at = python->layout;
    for (int skipped = 0; address != 0 && skipped < MOST_SKIPPED; skipped++) {
        uintptr_t code = 0, instruction = 0, length = 0;
        if (!load_word(python, address + at->code, &code))
            return false;
        code &= ~(uintptr_t)CODE_TAGS;
        if (code != 0 && has_type(python, code, python->code_type)) {
            frame->address = address;
            frame->code = code;
            if (!load_word(python, address + at->instruction, &instruction) ||
                !load_word(python, code + CODE_FILE, &frame->file) || !load_word(python, code + VAR_SIZE, &length))
                return false;
            uintptr_t first = code + at->first_instruction;
            /* Before its first instruction a frame is at its first line. */
            frame->offset = instruction < first || instruction - first >= 2 * length ? 0 : (int)(instruction - first);
            return true;
        }
        if (!load_word(python, address + at->previous, &address))
            return false;
    }
    return false;
}

/* The first frame has to be one with a file's name: then the layout is the one we think. */
static bool prove(gml_python *python, const gml_python_frame *frame)
{
    char text[8];
    if (!has_type(python, frame->file, python->text_type))
        return false;
    gml_python_file(python, frame, text, sizeof text);
    return text[0] != '\0';
}

bool gml_python_first(gml_python *python, gml_python_frame *frame)
{
    const gml_python_layout *at = python->layout;
    if (at == NULL || python->broken || python->is_ending())
        return false;
    uintptr_t state = (uintptr_t)python->this_thread();
    uintptr_t address = 0;
    if (state == 0)
        return false;
    bool sound = load_word(python, state + at->state_frame, &address);
    if (sound && at->indirect)
        sound = load_word(python, address + at->c_frame, &address);
    if (sound && address == 0)
        return false; /* the thread runs no Python now */
    sound = sound && settle(python, address, frame);
    if (python->trusted)
        return sound;
    sound = sound && prove(python, frame);
    python->trusted = sound;
    python->broken = !sound;
    if (!sound) {
        uint64_t own = 0;
        const char *why = gml_os_read_memory((uintptr_t)&python, &own, sizeof own)
                              ? "this Python is not laid out as its version should be"
                              : "neither process_vm_readv nor a pipe may be used here, so addresses cannot be checked";
        python->trouble = why;
    }
    return sound;
}

bool gml_python_next(gml_python *python, gml_python_frame *frame)
{
    uintptr_t address = 0;
    return load_word(python, frame->address + python->layout->previous, &address) && settle(python, address, frame);
}

/* ---- texts ---- */

/* A string of another form than plain ASCII has other bytes here, zeros among them, and is at least as long. */
static void copy_text(const gml_python *python, uintptr_t object, char *text, size_t capacity)
{
    uintptr_t length = 0;
    (void)snprintf(text, capacity, "?");
    if (!has_type(python, object, python->text_type) || !load_word(python, object + TEXT_LENGTH, &length) ||
        length == 0 || length > LONGEST_TEXT)
        return;
    size_t skipped = length < capacity ? 0 : length - (capacity - 1);
    size_t kept = length - skipped;
    if (!load(python, object + python->layout->text + skipped, text, kept))
        kept = 0;
    for (size_t i = 0; i < kept; i++)
        if (text[i] < ' ' || text[i] > '~')
            kept = 0;
    (void)snprintf(text + kept, capacity - kept, "%s", kept == 0 ? "?" : "");
}

void gml_python_file(gml_python *python, const gml_python_frame *frame, char *text, size_t capacity)
{
    copy_text(python, frame->file, text, capacity);
}

void gml_python_function(gml_python *python, const gml_python_frame *frame, char *text, size_t capacity)
{
    uintptr_t name = 0;
    (void)snprintf(text, capacity, "?");
    if (load_word(python, frame->code + CODE_FUNCTION, &name))
        copy_text(python, name, text, capacity);
}

int gml_python_line(const gml_python *python, const gml_python_frame *frame)
{
    return python->is_ending() ? 0 : python->line_of((void *)frame->code, frame->offset);
}
