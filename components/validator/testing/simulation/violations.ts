import type { Trace } from './trace.ts';

export interface InvariantViolation {
  readonly invariant:
    | 'agreement'
    | 'one certificate for each height'
    | 'certificate'
    | 'lock rule'
    | 'polka before precommit'
    | 'positions of a signer only rise'
    | 'equal state at equal height'
    | 'sealed once'
    | 'no second successor, no replay'
    | 'keys never call a known transaction new'
    | 'nothing sealed is lost'
    | 'nothing accepted is lost'
    | 'evidence is true'
    | 'honest members keep working'
    | 'progress after healing'
    /** More members are faulty than the set tolerates: broken invariants then say nothing about the validator. */
    | 'the simulator keeps to its bound';
  readonly message: string;
}

/** The first invariant that was broken in a world, if any. */
export class ViolationRecorder {
  readonly #trace: Trace;
  #broken: InvariantViolation | undefined;

  constructor(trace: Trace) {
    this.#trace = trace;
  }

  get broken(): InvariantViolation | undefined {
    return this.#broken;
  }

  break(invariant: InvariantViolation['invariant'], message: string): void {
    if (this.#broken !== undefined) return;
    this.#broken = { invariant, message };
    this.#trace.add('VIOLATION', `${invariant}: ${message}`);
  }
}
