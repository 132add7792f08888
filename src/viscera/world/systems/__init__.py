"""The phenomena of a world, one file each: a function that makes a `System` of them.

| file | one frame |
| --- | --- |
| `heat` | where electrodes are and whether the pedal is down → power per texel → conduction |
| `burns` | temperature → boiling, coagulation, char → areas → picture |
| `stiffening` | burn level → stiffness of the springs; what is burnt and stretched too far tears |
| `wounds` | pulse → wounds bleed, closed by clips or by burns |
| `drops` | suction and nozzle → drops let go, fly and land |
| `film` | the film of blood takes its steps |
| `ledger` | where every picolitre is |
| `film_picture` | the film as a picture on the skin |
| `gauze` | cloth on an organ keeps blood off, and reddens |
| `ink` | what is drawn on the skin |
| `water` | particles in a vessel, around the tools |
| `goals` | the clock of a drill |
"""
