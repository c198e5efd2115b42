import { MAX_JSON_DEPTH } from '../../encoding/json.ts';
import { AppError } from '../../errors/errors.ts';

/** Bounds of the logic of one action: steps, and the size of a value that it makes and of all its results. */
const LIMITS = { steps: 50_000, size: 600_000 } as const;

/** Characters that a program handles in the time of one step. */
const CHARACTERS_A_STEP = 64;

interface Measure {
  /** Values plus characters; what is contained twice counts twice. */
  readonly size: number;
  readonly depth: number;
}

function exceeded(message: string): never {
  throw new AppError('unprocessable', 'LOGIC_BUDGET_EXCEEDED', message);
}

/** Steps that the logic of one action may take; its pieces share one budget. */
export class LogicBudget {
  #left: number = LIMITS.steps;
  #kept = 0;
  readonly #measures = new WeakMap<object, Measure>();

  /** Takes steps; throws AppError unprocessable LOGIC_BUDGET_EXCEEDED when none are left. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) exceeded(`The logic of the action takes more than ${LIMITS.steps} steps`);
  }

  /** Takes the steps for handling a number of characters. */
  spendCharacters(count: number): void {
    this.spend(Math.ceil(count / CHARACTERS_A_STEP));
  }

  /**
   * Admits a value that the logic made; throws like spend when it is larger or deeper than data may be. A list that
   * contains the same list twice is small in memory and doubles in JSON, so measures count what JSON would contain.
   */
  admit<T>(made: T): T {
    const { size, depth } = this.#measure(made);
    if (size > LIMITS.size) exceeded(`A value that the logic makes is larger than ${LIMITS.size}`);
    if (depth > MAX_JSON_DEPTH)
      exceeded(`A value that the logic makes is nested deeper than ${MAX_JSON_DEPTH}`);
    return made;
  }

  /** Admits a value that becomes data, beside those that were kept before. */
  keep<T>(result: T): T {
    this.admit(result);
    this.#kept += this.#measure(result).size;
    if (this.#kept > LIMITS.size)
      exceeded(`The results of the action are larger than ${LIMITS.size} together`);
    return result;
  }

  #measure(value: unknown): Measure {
    if (typeof value === 'string') return { size: 1 + value.length, depth: 0 };
    if (typeof value !== 'object' || value === null) return { size: 1, depth: 0 };
    const known = this.#measures.get(value);
    if (known !== undefined) return known;
    let [size, depth] = [1, 0];
    for (const [name, member] of Object.entries(value)) {
      const inner = this.#measure(member);
      size += inner.size + (Array.isArray(value) ? 0 : name.length);
      depth = Math.max(depth, inner.depth);
    }
    const measure = { size, depth: depth + 1 };
    this.#measures.set(value, measure);
    return measure;
  }
}
