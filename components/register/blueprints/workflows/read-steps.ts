import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Location } from '../../ledger/sealed/rows/store.ts';
import { findAt } from '../../ledger/sealed/store.ts';
import { recordsAt } from '../../ledger/values/store.ts';
import { type LocatedStep, listSteps } from './store.ts';

type Db = Reader<RegisterSchema>;

interface SealedStep {
  readonly location: Location;
  readonly record: Uint8Array;
  readonly sealedAt: string;
  /** empty for a step */
  readonly publicationPayload: Uint8Array;
}

interface StepPage {
  readonly steps: readonly SealedStep[];
  /** where the next page begins: behind the last step of this one, or at the head */
  readonly next: Location;
}

/** Bytes of a page, unless its first step alone has more; a message of gRPC takes twice as many. */
const mostBytes = 8 * 1024 * 1024;
/** Records that are read at a time: a record has less than 512 KiB. */
const chunk = 16;

const nothing = new Uint8Array();

/** Everything below the height is stored; it is missing only when the register is being purged. */
function present<T>(found: T | undefined): T {
  if (found === undefined) throw refusal('REGISTER_NOT_FOUND');
  return found;
}

/** Publications are few, and may be in dockets without a value; steps never are. */
async function withBytes(
  db: Db,
  registerNo: number,
  located: readonly LocatedStep[],
): Promise<readonly SealedStep[]> {
  const steps = located.filter((one) => !one.isPublication);
  const records = await recordsAt(
    db,
    steps.map(({ docketNumber, position }) => ({ registerNo, docketNumber, position })),
  );
  const recordOf = new Map(steps.map((one, index) => [one, records.get(index)?.record]));
  const read: SealedStep[] = [];
  for (const one of located) {
    const { docketNumber, position, sealedAt } = one;
    const facts = { location: { docketNumber, position }, sealedAt };
    if (one.isPublication) {
      const { record, payload } = present(await findAt(db, { registerNo, docketNumber, position }));
      read.push({ ...facts, record, publicationPayload: payload });
    } else {
      read.push({ ...facts, record: present(recordOf.get(one)), publicationPayload: nothing });
    }
  }
  return read;
}

/** The longest prefix within the bound; never empty. */
async function bounded(db: Db, registerNo: number, located: readonly LocatedStep[]): Promise<SealedStep[]> {
  const steps: SealedStep[] = [];
  let bytes = 0;
  for (let at = 0; at < located.length; at += chunk) {
    for (const step of await withBytes(db, registerNo, located.slice(at, at + chunk))) {
      bytes += step.record.length + step.publicationPayload.length;
      if (steps.length > 0 && bytes > mostBytes) return steps;
      steps.push(step);
    }
  }
  return steps;
}

/** A page of steps and publications from a position on, in dockets below the height that the register had before. */
export async function readSteps(
  db: Db,
  register: { readonly registerNo: number; readonly height: number },
  from: Location,
  limit: number,
): Promise<StepPage> {
  const { registerNo, height } = register;
  const located = await listSteps(db, registerNo, { from, height }, limit);
  const steps = await bounded(db, registerNo, located);
  const last = steps.at(-1)?.location;
  const isEnd = steps.length === located.length && located.length < limit;
  if (last !== undefined && !isEnd) return { steps, next: { ...last, position: last.position + 1 } };
  // A reader that is ahead of the register keeps its position: the register was restored to an older state.
  return { steps, next: from.docketNumber >= height ? from : { docketNumber: height, position: 0 } };
}
