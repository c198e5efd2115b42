import type { DisclosureEvidence } from '#core/blueprint/disclosure/file.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { SealedRecord } from '#core/ledger/record.ts';

/** A place in the order of a register's ledger. */
export interface LedgerPosition {
  readonly docket: number;
  readonly index: number;
}

export interface LedgerRegister {
  readonly registerId: string;
  /** Number of sealed dockets. */
  readonly height: number;
  /** Payloads of a development register are not encrypted. */
  readonly devMode: boolean;
  /** Maximum size of record and payload together. */
  readonly maxTransactionBytes: number;
  /** Validators that do not judge steps yet; a step needs that there are none. */
  readonly validatorsLackingPins: readonly string[];
}

/** The key that a participant published for an address. */
export interface ParticipantKey {
  readonly address: string;
  /** Active, Deprecated or Revoked. */
  readonly status: string;
  readonly algorithm: string;
  /** Standard base64; empty when the record has none. */
  readonly publicKey: string;
}

/** A validator's answer to a submission. */
export interface SubmissionAnswer {
  /** HTTP status. */
  readonly status: number;
  /** Code of the first error; empty for an accepted one. */
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds: number;
}

/** A sealed publication of a definition. */
export interface SealedPublication {
  readonly publicationTxId: string;
  readonly blueprintId: string;
  readonly execDefHash: string;
  readonly structuralHash: string;
  /** DID of the publisher. */
  readonly publishedBy: string;
  /** Time of the docket, as the ledger writes it. */
  readonly sealedAt: string;
  readonly position: LedgerPosition;
  /** 1 + number of earlier publications of the blueprint on the register. */
  readonly ordinal: number;
  /** In its published form. */
  readonly definition: JsonObject;
}

/** A sealed record with its place. */
export interface PlacedRecord {
  readonly position: LedgerPosition;
  readonly record: SealedRecord;
  /** Time of the docket, as the ledger writes it. */
  readonly sealedAt: string;
}

/** Steps of a register from a position on, in the order of the ledger. */
export interface StepPage {
  readonly records: readonly PlacedRecord[];
  /** The position to read on from. */
  readonly next: LedgerPosition;
  /** Sealed dockets of the register. */
  readonly height: number;
}

/** A sealed transaction, exact bytes, with what proves that its register sealed it. */
export type SealedProof = Omit<DisclosureEvidence, 'group'>;

interface PublicationPage {
  readonly publications: readonly SealedPublication[];
  /** Position of the last one. */
  readonly next: LedgerPosition | undefined;
  readonly complete: boolean;
}

/** What this service reads of registers. Errors: unavailable, timeout. */
export interface Ledger {
  listRegisters(): Promise<readonly LedgerRegister[]>;
  findRegister(registerId: string): Promise<LedgerRegister | undefined>;
  /** Steps of a register from a position on; publications are passed over. */
  readSteps(registerId: string, from: LedgerPosition): Promise<StepPage>;
  /** Publications of a register after a position, in the order of the ledger. */
  listPublications(registerId: string, after: LedgerPosition | undefined): Promise<PublicationPage>;
  /** Payloads of sealed transactions by id; those that the register does not have are absent. */
  getPayloads(registerId: string, txIds: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** The proof that a transaction is sealed. Errors: not_found TX_NOT_FOUND. */
  prove(registerId: string, txId: string): Promise<SealedProof>;
  /** Submits the JSON text of a signed transaction. */
  submit(registerId: string, transaction: Uint8Array): Promise<SubmissionAnswer>;
  /** Keys that participants published, at most 256 addresses; those without a record are absent. */
  findParticipantKeys(registerId: string, addresses: readonly string[]): Promise<readonly ParticipantKey[]>;
}
