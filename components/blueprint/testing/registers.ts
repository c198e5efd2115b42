import { buildPublication } from '#core/blueprint/publication.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Ledger, LedgerPosition, PlacedRecord, SealedPublication } from '../clients/ledger.ts';
import type { Registers, Roster } from '../clients/registers.ts';
import { refusal } from '../errors.ts';

/** A register in memory. */
export interface TestRegister {
  readonly roster: Roster;
  readonly readers: readonly string[];
  readonly devMode: boolean;
  readonly isSealing: boolean;
  readonly publications: SealedPublication[];
  /** Sealed steps, in the order of the ledger. */
  readonly steps: PlacedRecord[];
}

/** Answers of the register service in place of its own. */
export type Answers = Partial<Pick<Registers, 'getRoster' | 'publish'>> & {
  isLedgerAway?: boolean;
  validatorsLackingPins?: readonly string[];
  /** Sealed dockets of each register. */
  height?: number;
  /** Runs when steps were read, before they are answered. */
  beforeSteps?: () => Promise<void>;
};

const registerFacts = { maxTransactionBytes: 512 * 1024, validatorsLackingPins: [] } as const;

/** A register that `w-owner` owns and the organisation of these tests reads. */
export function registerOf(register: Partial<TestRegister>): TestRegister {
  return {
    roster: [{ subject: memberDid('w-owner'), role: 'Owner' }],
    readers: ['admin', 'designer', 'user'],
    devMode: false,
    isSealing: true,
    publications: [],
    steps: [],
    ...register,
  };
}

type Sealing = Omit<Ledger, 'listRegisters' | 'findRegister' | 'readSteps' | 'listPublications'>;

interface FakeOptions {
  readonly registers: Map<string, TestRegister>;
  readonly answers: Answers;
  readonly clock: Clock;
  /** Takes submissions, and answers payloads and keys. */
  readonly sealing: Sealing;
}

/** The register service as this component sees it; publications are sealed at once, one in a docket. */
export function fakeRegisters({ registers, answers, clock, sealing }: FakeOptions) {
  const ledger: Ledger = {
    listRegisters: async () =>
      [...registers].map(([registerId, { publications, devMode }]) => ({
        registerId,
        devMode,
        height: publications.length + 1,
        ...registerFacts,
      })),
    findRegister: async (registerId) => {
      if (answers.isLedgerAway === true) throw refusal('REGISTER_UNAVAILABLE');
      const register = registers.get(registerId);
      if (register === undefined) return undefined;
      const { devMode, publications } = register;
      const validatorsLackingPins = answers.validatorsLackingPins ?? [];
      const height = publications.length + 1;
      return { registerId, devMode, height, ...registerFacts, validatorsLackingPins };
    },
    readSteps: async (registerId, from) => {
      const { steps = [], publications = [] } = registers.get(registerId) ?? {};
      const height =
        answers.height ??
        Math.max(publications.length + 1, ...steps.map(({ position }) => position.docket + 1));
      const behind = steps.filter(({ position }) => position.docket >= from.docket);
      const records = behind.slice(0, 2);
      await answers.beforeSteps?.();
      const last = behind.length > 2 ? records.at(-1)?.position.docket : undefined;
      return { records, next: { docket: last === undefined ? height : last + 1, index: 0 }, height };
    },
    ...sealing,
    listPublications: async (registerId, after) => {
      if (answers.isLedgerAway === true) throw refusal('REGISTER_UNAVAILABLE');
      const isAfter = ({ position }: SealedPublication) => position.docket > (after?.docket ?? 0);
      const all = registers.get(registerId)?.publications.filter(isAfter) ?? [];
      const publications = all.slice(0, 2);
      const next: LedgerPosition | undefined = publications.at(-1)?.position ?? after;
      return { publications, next, complete: all.length === publications.length };
    },
  };

  function publish({ registerId, definition, member }: Parameters<Registers['publish']>[0]) {
    const register = registers.get(registerId);
    if (register === undefined) throw refusal('GOVERNANCE_ROSTER_NOT_SEALED');
    const { txId, ...made } = buildPublication(registerId, definition as JsonObject & { id: string }, member);
    const { publications } = register;
    if (publications.some((one) => one.publicationTxId === txId))
      return { publicationTxId: txId, alreadyPublished: true };
    const docket = publications.length + 1;
    const before = publications.filter((one) => one.blueprintId === made.blueprintId);
    if (register.isSealing)
      publications.push({
        publicationTxId: txId,
        blueprintId: made.blueprintId,
        execDefHash: made.execDefHash,
        structuralHash: made.structuralHash,
        publishedBy: member,
        sealedAt: new Date(clock.nowMs() + docket).toISOString(),
        position: { docket, index: 0 },
        ordinal: before.length + 1,
        definition: made.payload.definition,
      });
    return { publicationTxId: txId, alreadyPublished: false };
  }

  const routes: Registers = {
    canRead: async (bearer, registerId) => registers.get(registerId)?.readers.includes(bearer) ?? false,
    getRoster: async (registerId) => {
      if (answers.getRoster !== undefined) return answers.getRoster(registerId);
      const register = registers.get(registerId);
      if (register === undefined) throw refusal('GOVERNANCE_ROSTER_NOT_SEALED', { retryAfterSeconds: 5 });
      return register.roster;
    },
    publish: async (publishing) => answers.publish?.(publishing) ?? publish(publishing),
    ensureSandbox: async (organizationId, walletAddress) => {
      const registerId = sha256Hex(`sandbox ${organizationId}`).slice(0, 32);
      const roster = [{ subject: memberDid(walletAddress), role: 'Owner' } as const];
      if (!registers.has(registerId)) registers.set(registerId, registerOf({ devMode: true, roster }));
      return registerId;
    },
  };

  return { ledger, routes };
}
