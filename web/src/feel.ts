// Force for eyes and ears, where no device renders it: a colour that warms and a tone that rises with the force. And the
// buzz of a generator while current flows.

/** What a strong push in soft tissue is: the colour is at its hottest and the tone at its highest there [N]. */
export const STRONG = 1.0;

const LOWEST_TONE = 110; // [Hz]
const OCTAVES = 2;
const LOUDEST = 0.12; // of full scale; a tone that lasts must not be loud
const BUZZ_PITCH = 220; // [Hz]
const BUZZ_LOUDNESS = 0.035; // of full scale: soft
const BUZZ_BAND = 900; // [Hz]; what is left of the sawtooth's harmonics
const GLIDE = 0.03; // [s] time constant of pitch and loudness, so that nothing clicks

/** 0 without force, 1 at `STRONG`; steep at first, as touch is. */
export function strength(force: number): number {
  if (!Number.isFinite(force) || force <= 0) return 0;
  return Math.min(1, Math.sqrt(force / STRONG));
}

/** From the page's amber through orange to red. */
export function forceColour(force: number): string {
  const s = strength(force);
  return `hsl(${Math.round(43 - 40 * s)} 95% ${Math.round(66 - 8 * s)}%)`;
}

export function tone(force: number): { pitch: number; loudness: number } {
  const s = strength(force);
  return { pitch: LOWEST_TONE * 2 ** (OCTAVES * s), loudness: LOUDEST * s };
}

/** A tone that follows the force. Browsers let a page sound only after a click, so it starts when it is switched on. */
export class ForceSound {
  private context: AudioContext | null = null;
  private oscillator: OscillatorNode | null = null;
  private gain: GainNode | null = null;
  private buzz: GainNode | null = null;

  get on(): boolean {
    return this.context !== null;
  }

  switchOn(): void {
    if (this.context !== null) return;
    this.context = new AudioContext();
    this.gain = this.context.createGain();
    this.gain.gain.value = 0;
    this.oscillator = this.context.createOscillator();
    this.oscillator.type = "triangle";
    this.oscillator.connect(this.gain).connect(this.context.destination);
    this.oscillator.start();
    this.buzz = buzzer(this.context);
    void this.context.resume();
  }

  switchOff(): void {
    this.oscillator?.stop();
    void this.context?.close();
    this.context = this.oscillator = this.gain = this.buzz = null;
  }

  setForce(force: number): void {
    if (this.context === null || this.oscillator === null || this.gain === null) return;
    const { pitch, loudness } = tone(force);
    this.oscillator.frequency.setTargetAtTime(pitch, this.context.currentTime, GLIDE);
    this.gain.gain.setTargetAtTime(loudness, this.context.currentTime, GLIDE);
  }

  /** Current flows. */
  setBuzz(on: boolean): void {
    if (this.context === null || this.buzz === null) return;
    this.buzz.gain.setTargetAtTime(on ? BUZZ_LOUDNESS : 0, this.context.currentTime, GLIDE);
  }
}

function buzzer(context: AudioContext): GainNode {
  const saw = context.createOscillator();
  saw.type = "sawtooth";
  saw.frequency.value = BUZZ_PITCH;
  const band = context.createBiquadFilter();
  band.type = "lowpass";
  band.frequency.value = BUZZ_BAND;
  const gain = context.createGain();
  gain.gain.value = 0;
  saw.connect(band).connect(gain).connect(context.destination);
  saw.start();
  return gain;
}
