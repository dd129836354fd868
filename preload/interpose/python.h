/* SPDX-License-Identifier: Apache-2.0 */
/* Python: which line of Python this thread is at, without Python's help.
 *
 * PyTorch gives the GIL back before it allocates, and holds a lock of its own while it does: so nothing here may
 * take the GIL, count a reference or make an object. It does not have to. The frames of this very thread stand
 * still while the thread is in C, whoever has the GIL, so they are only read: from the thread state, which
 * PyGILState_GetThisThreadState gives without the GIL, along `previous` to the code objects. Where the fields
 * lie depends on CPython's version; 3.11 to 3.14 (with a GIL) are known.
 *
 * The first walk reads through the kernel, which refuses an address that is none instead of killing the
 * program, and has to meet a code object (by its type) with a name. Until it has, nothing is read directly;
 * what does not look as expected ends the attempts for good.
 *
 * When the interpreter ends it frees the states of threads that are still in C (daemon threads): from then on no
 * thread is looked at. A look may be under way at that moment, so all threads but the main one, which ends the
 * interpreter, read through the kernel always (about 0.3 us a field). */
#ifndef GML_INTERPOSE_PYTHON_H
#define GML_INTERPOSE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gml_python_layout {
    unsigned minor;
    bool indirect;              /* the thread state leads to a C frame, and that one to the Python frame */
    uint16_t state_frame;       /* in the thread state */
    uint16_t c_frame;           /* the Python frame, in the C frame */
    uint16_t code, previous, instruction; /* in a frame */
    uint16_t first_instruction; /* in a code object */
    uint16_t text;              /* the characters of a string, in it */
} gml_python_layout;

typedef struct gml_python {
    const gml_python_layout *layout; /* NULL: no Python that is known */
    bool trusted;                    /* a first walk went well */
    bool broken;                     /* one did not */
    const char *trouble;             /* why it did not, for people; NULL: it did */
    void *(*this_thread)(void);
    int (*is_ending)(void);          /* states of other threads may be freed */
    int (*line_of)(void *code, int offset); /* PyCode_Addr2Line; reads only */
    const void *code_type;
    const void *text_type;
} gml_python;

typedef struct gml_python_frame {
    uintptr_t address;
    uintptr_t code;
    uintptr_t file;  /* its string object */
    int offset;      /* of the instruction, in bytes */
} gml_python_frame;

/* Looks Python up in this process; says in `status` what was found. Takes the loader's lock. */
void gml_python_find(gml_python *python, char *status, size_t capacity);

/* The innermost Python frame of this thread, and the one that called it. False: there is none. */
bool gml_python_first(gml_python *python, gml_python_frame *frame);
bool gml_python_next(gml_python *python, gml_python_frame *frame);

/* The texts of a frame's code, cut at the front to fit; "?" for one that is not plain ASCII. */
void gml_python_file(gml_python *python, const gml_python_frame *frame, char *text, size_t capacity);
void gml_python_function(gml_python *python, const gml_python_frame *frame, char *text, size_t capacity);

/* The line in the file. */
int gml_python_line(const gml_python *python, const gml_python_frame *frame);

#endif
