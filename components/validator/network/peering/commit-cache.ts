import { encodeHex } from '#core/encoding/hex.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { SealedDocket } from '../../chain/sealing/ports.ts';
import type { CommitBundle } from '../transport/transport.ts';

interface CachedCommit {
  readonly registerId: string;
  readonly sealed: SealedDocket;
  readonly sizeBytes: number;
}

const maxBytes = 32 * 1024 * 1024;
/** Estimated memory overhead of a docket and of each transaction. */
const overheadBytes = { docket: 2_048, transaction: 512 } as const;

/** The latest decided dockets of all registers, for members that missed them; bounded, oldest evicted first. */
export class CommitCache {
  readonly #commits = new Map<string, CachedCommit>();
  readonly #transactions = new Map<string, PooledTransaction>();
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(limitBytes: number = maxBytes) {
    this.#maxBytes = limitBytes;
  }

  add(registerId: string, sealed: SealedDocket): void {
    const { header, transactions } = sealed.docket;
    const sizeBytes = transactions.reduce<number>(
      (sum, transaction) => sum + transaction.sizeBytes + overheadBytes.transaction,
      overheadBytes.docket,
    );
    this.#commits.set(`${registerId}/${header.docketNumber}`, { registerId, sealed, sizeBytes });
    for (const each of transactions) this.#transactions.set(`${registerId}/${each.txId}`, each);
    this.#bytes += sizeBytes;
    for (const [key, cached] of this.#commits) {
      if (this.#bytes <= this.#maxBytes || this.#commits.size === 1) return;
      this.#remove(key, cached);
    }
  }

  find(registerId: string, height: number): SealedDocket | undefined {
    return this.#commits.get(`${registerId}/${height}`)?.sealed;
  }

  findTransaction(registerId: string, txId: string): PooledTransaction | undefined {
    return this.#transactions.get(`${registerId}/${txId}`);
  }

  #remove(key: string, { registerId, sealed, sizeBytes }: CachedCommit): void {
    this.#commits.delete(key);
    this.#bytes -= sizeBytes;
    for (const { txId } of sealed.docket.transactions) this.#transactions.delete(`${registerId}/${txId}`);
  }
}

/** A decided docket as a commit bundle. */
export function bundleOf({ docket, certificate }: SealedDocket): CommitBundle {
  const recordHashes = docket.transactions.map((transaction) => encodeHex(transaction.leaf));
  return { header: docket.header, certificate, recordHashes };
}
