import type { IndexedDocket } from './rows.ts';

/** Index rows of dockets that this process has just stored, so that they need not be read from the values. */
export interface PendingDockets {
  /** Adds a docket; one that does not follow the last one of its register replaces those. */
  add(registerNo: number, docket: IndexedDocket): void;
  /** Removes and returns the consecutive dockets of a register, oldest first, at most a batch. */
  take(registerNo: number): readonly IndexedDocket[];
  has(registerNo: number): boolean;
  drop(registerNo: number): void;
}

interface PendingOptions {
  /** Rows of all registers that are kept, with those of recipients. */
  readonly mostRows: number;
  /** Rows of one batch, with those of recipients; a single docket may have more. */
  readonly batchRows: number;
}

const follows = (last: IndexedDocket | undefined, docket: IndexedDocket) =>
  last?.docketNumber === docket.docketNumber - 1 && last.hash === docket.previousHash;

/** Index rows of a docket with the rows of their recipients, of which a transaction may have many. */
const weightOf = ({ rows }: IndexedDocket) =>
  rows.reduce((sum, { recipients }) => sum + 1 + recipients.length, 0);

/** Beyond the bound, the dockets of a register are dropped; they are in the database. */
export function createPendingDockets({ mostRows, batchRows }: PendingOptions): PendingDockets {
  const byRegister = new Map<number, IndexedDocket[]>();
  let kept = 0;

  function drop(registerNo: number): void {
    for (const docket of byRegister.get(registerNo) ?? []) kept -= weightOf(docket);
    byRegister.delete(registerNo);
  }

  return {
    add(registerNo, docket) {
      if (!follows(byRegister.get(registerNo)?.at(-1), docket)) drop(registerNo);
      const weight = weightOf(docket);
      if (kept + weight > mostRows) {
        drop(registerNo);
        return;
      }
      kept += weight;
      const dockets = byRegister.get(registerNo) ?? [];
      dockets.push(docket);
      byRegister.set(registerNo, dockets);
    },
    take(registerNo) {
      const dockets = byRegister.get(registerNo) ?? [];
      let rows = 0;
      const end = dockets.findIndex((docket, index) => {
        rows += weightOf(docket);
        return index > 0 && rows > batchRows;
      });
      const taken = dockets.splice(0, end === -1 ? dockets.length : end);
      for (const docket of taken) kept -= weightOf(docket);
      if (dockets.length === 0) byRegister.delete(registerNo);
      return taken;
    },
    has: (registerNo) => byRegister.has(registerNo),
    drop,
  };
}
