import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isMember } from '../../chain/state/state.ts';
import type { CommitBundle, SealedTransaction } from '../transport/transport.ts';
import { bundleOf, type CommitCache } from './commit-cache.ts';
import { sealedOf } from './transaction-gossip.ts';

const maxRecords = 2_000;
const maxRecordBytes = 8 * 1024 * 1024;

/** Serves records and commits to members of a register; other validators get nothing. */
export class CommitServer {
  readonly #commits: CommitCache;
  readonly #find: (registerId: string) => RegisterChain | undefined;

  constructor(commits: CommitCache, find: (registerId: string) => RegisterChain | undefined) {
    this.#commits = commits;
    this.#find = find;
  }

  /** Returns the available transactions, up to the size of one answer. */
  records(from: string, registerId: string, transactionIds: readonly string[]): readonly SealedTransaction[] {
    const register = this.#find(registerId);
    if (register === undefined || !isMember(register, from)) return [];
    const records: SealedTransaction[] = [];
    let bytes = 0;
    for (const txId of transactionIds.slice(0, maxRecords)) {
      const known = this.#commits.findTransaction(registerId, txId) ?? register.pool.find(txId)?.transaction;
      if (known === undefined) continue;
      bytes += known.sizeBytes;
      if (bytes > maxRecordBytes && records.length > 0) break;
      records.push(sealedOf(known));
    }
    return records;
  }

  commit(from: string, registerId: string, height: number): CommitBundle | undefined {
    const register = this.#find(registerId);
    if (register === undefined || !isMember(register, from)) return undefined;
    const unstored = register.unstored.find(({ docket }) => docket.header.docketNumber === height);
    const sealed = this.#commits.find(registerId, height) ?? unstored;
    return sealed && bundleOf(sealed);
  }
}
