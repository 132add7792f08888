// How many pixels are drawn: as many as the machine can keep up with.

const SHARES = [1, 0.85, 0.7, 0.6, 0.5]; // of the screen's own resolution
const TOO_SLOW = 34; // [ms] between pictures
const FAST = 19; // [ms]
const PATIENCE = 12; // slow pictures in a row before a change
const CONFIDENCE = 240; // fast ones before trying more

export class Resolution {
  private level: number;
  private slow = 0;
  private fast = 0;
  private tried = 0;

  /** `fixed` never changes, so that two pictures can be compared. */
  constructor(private readonly software: boolean, private readonly fixed: boolean) {
    this.level = software ? SHARES.length - 2 : 0;
  }

  share(): number {
    return SHARES[this.level];
  }

  /** `interval` between two pictures that were both drawn [ms]; true when the resolution changed. */
  note(interval: number): boolean {
    if (this.fixed) return false;
    this.slow = interval > TOO_SLOW ? this.slow + 1 : 0;
    this.fast = interval < FAST ? this.fast + 1 : 0;
    if (this.slow >= PATIENCE && this.level < SHARES.length - 1) return this.change(1);
    // After two vain attempts it stays where it is: a picture that keeps changing is worse than a coarse one.
    if (this.fast >= CONFIDENCE && this.level > 0 && this.tried < 2 && !this.software) {
      this.tried += 1;
      return this.change(-1);
    }
    return false;
  }

  private change(by: number): boolean {
    this.level += by;
    this.slow = this.fast = 0;
    return true;
  }
}
