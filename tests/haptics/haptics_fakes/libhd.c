/* A stand-in for libHD of OpenHaptics: a servo thread of its own that calls back a thousand times a second, up to two
 * devices, one list of errors, and strictness where the real one is strict. Functions that begin with `fake_` are for
 * the tests.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef unsigned int HHD;
typedef struct {
    unsigned int code;
    int internal;
    HHD device;
} HDErrorInfo;
typedef unsigned int (*Callback)(void *);

enum { DEVICES = 2, CALLBACKS = 8, ERRORS = 64 };
enum { FIRST_HANDLE = 7 }; /* so that a handle is not mistaken for an index */
enum {
    INVALID_HANDLE = -1,
    SUCCESS = 0,
    INVALID_ENUM = 0x0100,
    INVALID_OPERATION = 0x0103,
    BAD_HANDLE = 0x0104,
    DEVICE_FAULT = 0x0300,
    ILLEGAL_BEGIN = 0x0400,
    ILLEGAL_END = 0x0401,
};
enum {
    CURRENT_BUTTONS = 0x2000,
    CURRENT_TRANSFORM = 0x2052,
    DEVICE_MODEL_TYPE = 0x2501,
    DEVICE_VENDOR = 0x2503,
    NOMINAL_MAX_FORCE = 0x2603,
    CURRENT_FORCE = 0x2700,
    FORCE_OUTPUT = 0x4000,
};

typedef struct {
    char name[64];
    bool plugged, open, enabled, in_frame;
    double transform[16];
    int buttons;
    double force[3];
    unsigned int fault; /* reported at the end of every frame */
    int frames;
} Device;

static Device devices[DEVICES];
static Callback callbacks[CALLBACKS];
static HDErrorInfo errors[ERRORS];
static int error_count;
static HHD current;
static bool running, frozen;
static int calls_outside_frame;
static pthread_t servo;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Device *find(HHD handle) {
    unsigned int index = handle - FIRST_HANDLE;
    return index < DEVICES && devices[index].open ? &devices[index] : NULL;
}

static void complain(unsigned int code) {
    if (error_count < ERRORS) errors[error_count++] = (HDErrorInfo){code, 0, current};
}

static void *serve(void *unused) {
    (void)unused;
    const struct timespec millisecond = {0, 1000000};
    while (running) {
        nanosleep(&millisecond, NULL);
        for (int i = 0; i < CALLBACKS && !frozen; i++) {
            Callback call = callbacks[i];
            if (call && call(NULL) == 0) callbacks[i] = NULL;
        }
    }
    return NULL;
}

HHD hdInitDevice(const char *name) {
    for (unsigned int i = 0; i < DEVICES; i++) {
        Device *device = &devices[i];
        bool meant = name == NULL ? i == 0 : strcmp(name, device->name) == 0;
        if (meant && device->plugged && !device->open) {
            device->open = true;
            device->in_frame = device->enabled = false;
            memset(device->force, 0, sizeof device->force);
            current = FIRST_HANDLE + i;
            /* Waking a device takes a while, and the servo goes on with the others. */
            const struct timespec a_while = {0, 5000000};
            nanosleep(&a_while, NULL);
            return FIRST_HANDLE + i;
        }
    }
    complain(DEVICE_FAULT);
    return (HHD)INVALID_HANDLE;
}

void hdDisableDevice(HHD handle) {
    Device *device = find(handle);
    if (device) device->open = false;
    else complain(BAD_HANDLE);
}

HHD hdGetCurrentDevice(void) { return current; }

void hdMakeCurrentDevice(HHD handle) {
    if (find(handle)) current = handle;
    else complain(BAD_HANDLE);
}

void hdEnable(unsigned int what) {
    Device *device = find(current);
    if (device && what == FORCE_OUTPUT) device->enabled = true;
    else complain(device ? INVALID_ENUM : INVALID_OPERATION);
}

void hdStartScheduler(void) {
    if (running) {
        complain(INVALID_OPERATION);
        return;
    }
    running = true;
    pthread_create(&servo, NULL, serve, NULL);
}

void hdStopScheduler(void) {
    if (!running) return;
    running = false;
    pthread_join(servo, NULL);
}

unsigned long hdScheduleAsynchronous(Callback call, void *data, unsigned short priority) {
    (void)data, (void)priority;
    for (int i = 0; i < CALLBACKS; i++)
        if (!callbacks[i]) {
            callbacks[i] = call;
            return i + 1;
        }
    complain(0x0501);
    return 0;
}

void hdScheduleSynchronous(Callback call, void *data, unsigned short priority) {
    (void)priority;
    call(data);
}

void hdBeginFrame(HHD handle) {
    Device *device = find(handle);
    if (!device || device->in_frame) {
        complain(ILLEGAL_BEGIN);
        return;
    }
    device->in_frame = true;
    current = handle;
}

void hdEndFrame(HHD handle) {
    Device *device = find(handle);
    if (!device || !device->in_frame) {
        complain(ILLEGAL_END);
        return;
    }
    device->in_frame = false;
    device->frames++;
    if (device->fault) complain(device->fault);
}

static Device *in_frame(void) {
    Device *device = find(current);
    if (device && device->in_frame) return device;
    calls_outside_frame++;
    complain(INVALID_OPERATION);
    return NULL;
}

void hdGetDoublev(unsigned int what, double *out) {
    if (what == NOMINAL_MAX_FORCE) {
        *out = 3.5;
        return;
    }
    Device *device = in_frame();
    if (!device) return;
    pthread_mutex_lock(&lock);
    if (what == CURRENT_TRANSFORM) memcpy(out, device->transform, sizeof device->transform);
    else complain(INVALID_ENUM);
    pthread_mutex_unlock(&lock);
}

void hdGetIntegerv(unsigned int what, int *out) {
    Device *device = in_frame();
    if (!device) return;
    if (what == CURRENT_BUTTONS) *out = device->buttons;
    else complain(INVALID_ENUM);
}

void hdSetDoublev(unsigned int what, const double *value) {
    Device *device = in_frame();
    if (!device) return;
    pthread_mutex_lock(&lock);
    if (what == CURRENT_FORCE && device->enabled) memcpy(device->force, value, sizeof device->force);
    else complain(INVALID_OPERATION);
    pthread_mutex_unlock(&lock);
}

HDErrorInfo hdGetError(void) {
    HDErrorInfo none = {SUCCESS, 0, current};
    if (error_count == 0) return none;
    HDErrorInfo first = errors[0];
    memmove(errors, errors + 1, --error_count * sizeof *errors);
    return first;
}

const char *hdGetString(unsigned int what) {
    return what == DEVICE_MODEL_TYPE ? "Fake Touch" : what == DEVICE_VENDOR ? "viscera" : "";
}

/* --- for the tests --- */

void fake_reset(void) {
    hdStopScheduler();
    memset(devices, 0, sizeof devices);
    memset(callbacks, 0, sizeof callbacks);
    error_count = calls_outside_frame = 0;
    frozen = false;
}

void fake_plug(int index, const char *name) {
    Device *device = &devices[index];
    snprintf(device->name, sizeof device->name, "%s", name);
    for (int i = 0; i < 16; i++) device->transform[i] = i % 5 == 0;
    device->fault = 0;
    device->plugged = true;
}

void fake_unplug(int index, unsigned int code) {
    devices[index].plugged = false;
    devices[index].fault = code;
}

void fake_warn(int index, unsigned int code) { devices[index].fault = code; }

void fake_freeze(int yes) { frozen = yes; }

void fake_move(int index, const double *columns, int buttons) {
    pthread_mutex_lock(&lock);
    memcpy(devices[index].transform, columns, sizeof devices[index].transform);
    devices[index].buttons = buttons;
    pthread_mutex_unlock(&lock);
}

void fake_force(int index, double *out) {
    pthread_mutex_lock(&lock);
    memcpy(out, devices[index].force, sizeof devices[index].force);
    pthread_mutex_unlock(&lock);
}

int fake_frames(int index) { return devices[index].frames; }
int fake_is_open(int index) { return devices[index].open; }
int fake_is_running(void) { return running; }
int fake_calls_outside_frame(void) { return calls_outside_frame; }
