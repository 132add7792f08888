/* A stand-in for libdrd of the Force Dimension SDK: two devices, an omega.3 and a sigma.7 (wrist and gripper). The Python
 * package names some two hundred functions as it is imported; those that are not written here are in stubs.h, made by the
 * test from the package itself. Functions that begin with `fake_` are for the tests.
 */
#include <stdbool.h>
#include <string.h>

#include "stubs.h"

enum { DEVICES = 2, FIRST_ID = 3 }; /* so that an id is not mistaken for an index */
enum { NO_ERROR = 0, COM = 2, NO_DEVICE = 5, TIMEGUARD = 1, SATURATED = 2 };
enum { STATUS_RESET = 3, STATUS_LENGTH = 17 };

typedef struct {
    bool plugged, open, enabled, calibrated, braked;
    double position[3], frame[9], gap, force[3], torque[3], limit;
    unsigned int buttons;
} Device;

static Device devices[DEVICES];
static int last_error;

static Device *find(signed char id) {
    int index = id - FIRST_ID;
    if (index >= 0 && index < DEVICES && devices[index].open && devices[index].plugged) return &devices[index];
    last_error = COM;
    return NULL;
}

static bool has_wrist(signed char id) { return id == FIRST_ID + 1; }

int dhdErrorGetLast(void) { return last_error; }
const char *dhdErrorGetStr(int code) {
    return code == COM ? "communication error" : code == NO_DEVICE ? "no device found" : "no error";
}
const char *dhdErrorGetLastStr(void) { return dhdErrorGetStr(last_error); }

void dhdGetSDKVersion(int *major, int *minor, int *release, int *revision) {
    *major = 3, *minor = 17, *release = 1, *revision = 0;
}

int dhdGetAvailableCount(void) {
    int count = 0;
    for (int i = 0; i < DEVICES; i++) count += devices[i].plugged;
    return count;
}

int dhdOpenID(signed char index) {
    if (index < 0 || index >= DEVICES || !devices[index].plugged || devices[index].open) {
        last_error = NO_DEVICE;
        return -1;
    }
    devices[index].open = true;
    return FIRST_ID + index;
}

int dhdClose(signed char id) {
    int index = id - FIRST_ID;
    if (index < 0 || index >= DEVICES || !devices[index].open) return -1;
    devices[index].open = devices[index].enabled = false;
    return 0;
}

int dhdStop(signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    device->braked = true;
    return 0;
}

int dhdGetStatus(int *status, signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    memset(status, 0, STATUS_LENGTH * sizeof *status);
    status[STATUS_RESET] = device->calibrated;
    return 0;
}

const char *dhdGetSystemName(signed char id) { return has_wrist(id) ? "sigma.7" : "omega.3"; }
bool dhdHasWrist(signed char id) { return has_wrist(id); }
bool dhdHasActiveWrist(signed char id) { return has_wrist(id); }
bool dhdHasGripper(signed char id) { return has_wrist(id); }

int dhdEnableForce(bool yes, signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    device->enabled = yes;
    return 0;
}

int dhdSetGravityCompensation(int yes, signed char id) { return (void)yes, find(id) ? 0 : -1; }

int dhdSetMaxForce(double limit, signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    device->limit = limit;
    return 0;
}

int dhdGetPosition(double *x, double *y, double *z, signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    *x = device->position[0], *y = device->position[1], *z = device->position[2];
    return TIMEGUARD;
}

int dhdGetPositionAndOrientationFrame(double *x, double *y, double *z, double *frame, signed char id) {
    int result = dhdGetPosition(x, y, z, id);
    if (result >= 0) memcpy(frame, find(id)->frame, sizeof devices[0].frame);
    return result;
}

int dhdGetGripperGap(double *gap, signed char id) {
    Device *device = find(id);
    if (!device) return -1;
    *gap = device->gap;
    return 0;
}

unsigned int dhdGetButtonMask(signed char id) {
    Device *device = find(id);
    return device ? device->buttons : 0;
}

int dhdSetForceAndTorque(double x, double y, double z, double a, double b, double c, signed char id) {
    Device *device = find(id);
    if (!device || !device->enabled) return -1;
    const double force[3] = {x, y, z}, torque[3] = {a, b, c};
    memcpy(device->force, force, sizeof force);
    memcpy(device->torque, torque, sizeof torque);
    return SATURATED;
}

int dhdSetForce(double x, double y, double z, signed char id) {
    return dhdSetForceAndTorque(x, y, z, 0.0, 0.0, 0.0, id);
}

/* --- for the tests --- */

void fake_reset(void) { memset(devices, 0, sizeof devices); }

void fake_plug(int index, int calibrated) {
    Device *device = &devices[index];
    device->plugged = true;
    device->calibrated = calibrated;
    for (int i = 0; i < 9; i++) device->frame[i] = i % 4 == 0;
}

void fake_unplug(int index) { devices[index].plugged = false; }

void fake_move(int index, const double *position, const double *frame, double gap, unsigned int buttons) {
    memcpy(devices[index].position, position, sizeof devices[index].position);
    memcpy(devices[index].frame, frame, sizeof devices[index].frame);
    devices[index].gap = gap;
    devices[index].buttons = buttons;
}

void fake_force(int index, double *force, double *torque) {
    memcpy(force, devices[index].force, sizeof devices[index].force);
    memcpy(torque, devices[index].torque, sizeof devices[index].torque);
}

double fake_limit(int index) { return devices[index].limit; }
int fake_is_open(int index) { return devices[index].open; }
int fake_is_braked(int index) { return devices[index].braked; }
