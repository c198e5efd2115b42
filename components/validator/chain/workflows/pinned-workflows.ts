import { findPublication } from '#core/blueprint/publication.ts';
import { compileWorkflow, type Workflow } from '#core/blueprint/steps/workflow.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { failure } from '../../errors.ts';

/** Reads stored transactions; throws AppError when the register service is unavailable. */
interface StoredTransactions {
  findTransaction(
    registerId: string,
    txId: string,
  ): Promise<{ readonly record: Uint8Array; readonly payload: Uint8Array } | undefined>;
}

/** A publication that is sealed; it never changes. */
export interface PinnedWorkflow {
  /** Undefined when the definition is no workflow: no step on it is valid. */
  readonly workflow: Workflow | undefined;
  readonly sizeBytes: number;
}

/** Bounds of one register. Pooled steps hold on to their workflow beyond them. */
const maxWorkflows = 256;
const maxBytes = 8 * 1024 * 1024;

/**
 * The compiled workflows of one register by pin, those in use. A pin counts as known once the register service has
 * stored it, and stays so. A publication in a docket that is decided but not stored does not count: members learn of the
 * storing at different times, so their answers could differ where the register service's own answer, once it is given,
 * is the same for all. The cost is a retry: a client that sends a step before the publication is stored is answered to
 * retry, and a member that is asked too early votes nil.
 */
export class PinnedWorkflows {
  readonly #registerId: string;
  readonly #ledger: StoredTransactions;
  readonly #known = new Map<string, PinnedWorkflow>();
  readonly #loading = new Map<string, Promise<PinnedWorkflow>>();
  #bytes = 0;

  constructor(registerId: string, ledger: StoredTransactions) {
    this.#registerId = registerId;
    this.#ledger = ledger;
  }

  find(pin: string): PinnedWorkflow | undefined {
    const known = this.#known.get(pin);
    if (known === undefined) return undefined;
    this.#known.delete(pin);
    this.#known.set(pin, known);
    return known;
  }

  /**
   * The workflow of a pin that the register service knows.
   * @throws AppError unavailable when the publication cannot be read
   */
  load(pin: string): Promise<PinnedWorkflow> {
    const known = this.find(pin);
    if (known !== undefined) return Promise.resolve(known);
    let loading = this.#loading.get(pin);
    if (loading === undefined) {
      loading = this.#read(pin).finally(() => this.#loading.delete(pin));
      this.#loading.set(pin, loading);
    }
    return loading;
  }

  async #read(pin: string): Promise<PinnedWorkflow> {
    const sealed = await this.#ledger.findTransaction(this.#registerId, pin);
    const publication = sealed && findPublication(parseRecord(sealed.record), sealed.payload);
    if (sealed === undefined || publication?.txId !== pin) {
      throw failure('VAL_CHAIN_TRANSIENT', {
        message: `The publication ${pin} cannot be read from the register service; retry`,
        retryAfterSeconds: 1,
      });
    }
    const sizeBytes = sealed.payload.length;
    return this.#keep(pin, { workflow: compileWorkflow(publication.payload.definition), sizeBytes });
  }

  #keep(pin: string, loaded: PinnedWorkflow): PinnedWorkflow {
    this.#known.set(pin, loaded);
    this.#bytes += loaded.sizeBytes;
    for (const [oldest, { sizeBytes }] of this.#known) {
      const fits = this.#known.size <= maxWorkflows && this.#bytes <= maxBytes;
      if (fits || oldest === pin) break;
      this.#known.delete(oldest);
      this.#bytes -= sizeBytes;
    }
    return loaded;
  }
}
