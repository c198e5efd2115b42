import { sha256Hex } from '../crypto/hash.ts';
import { encodeHex } from '../encoding/hex.ts';
import { findTimestamp } from '../encoding/timestamp.ts';
import { AppError, type Violation, violation } from '../errors/errors.ts';
import { logLeaf } from './log.ts';
import { type Frontier, root } from './merkle.ts';
import { ZERO_HASH } from './register-id.ts';

/** What the docket hash covers (specification document 2, section 2). */
interface DocketText {
  readonly registerId: string;
  /** 0 for the genesis docket. */
  readonly docketNumber: number;
  readonly previousHash: string;
  /** Stored and hashed verbatim. */
  readonly timestamp: string;
  /** Address of the sealing member's key. */
  readonly validatorAddress: string;
  /** In docket order. */
  readonly transactionIds: readonly string[];
}

/** A docket without its records, votes and certificate. */
export interface DocketHeader extends DocketText {
  readonly hash: string;
  /** RFC 6962 root over the sealed records. */
  readonly merkleRoot: string;
  /** RFC 6962 root over the register's dockets, this one included. */
  readonly logRoot: string;
  /** Hash of the validator set that may seal this docket. */
  readonly validatorSetHash: string;
  readonly isGenesis: boolean;
  /** Canonical JSON text; genesis only. */
  readonly genesisConfig?: string | undefined;
  /** Sum of the records' bytes. */
  readonly sizeBytes: number;
}

export interface DocketDraft extends DocketText {
  readonly validatorSetHash: string;
  readonly genesisConfig?: string | undefined;
  readonly sizeBytes: number;
}

/** The docket before the next one. */
export interface DocketHead {
  readonly docketNumber: number;
  readonly hash: string;
  readonly timestamp: string;
}

const HEX_64 = /^[0-9a-f]{64}$/;

/**
 * Judges that every field of the docket hash keeps to its alphabet. Without the check two dockets could share one text,
 * because the fields are joined with `|`.
 */
export function checkDocketText(text: DocketText): Violation[] {
  const found: Violation[] = [];
  const check = (right: boolean, code: string, field: string, expected: string): void => {
    if (!right) found.push(violation(code, `${field} is not ${expected}`, field));
  };
  check(
    /^[0-9a-f]{32}$/.test(text.registerId),
    'REGISTER_ID_REQUIRED',
    'registerId',
    '32 lower-case hex characters',
  );
  const isNumber = Number.isSafeInteger(text.docketNumber) && text.docketNumber >= 0;
  check(isNumber, 'DOCKET_NUMBER_SEQUENCE', 'docketNumber', 'a whole number from 0');
  check(
    HEX_64.test(text.previousHash),
    'PREVIOUS_HASH_MISMATCH',
    'previousHash',
    '64 lower-case hex characters',
  );
  check(findTimestamp(text.timestamp) !== undefined, 'HASH_MISMATCH', 'timestamp', 'an ISO 8601 timestamp');
  const isAddress = /^[A-Za-z0-9:._-]{1,128}$/.test(text.validatorAddress);
  check(isAddress, 'HASH_MISMATCH', 'validatorAddress', '1 to 128 characters of A-Z a-z 0-9 : . _ -');
  const ids = text.transactionIds;
  check(
    ids.every((id) => HEX_64.test(id)),
    'HASH_MISMATCH',
    'transactionIds',
    '64 lower-case hex characters each',
  );
  check(new Set(ids).size === ids.length, 'HASH_MISMATCH', 'transactionIds', 'without repetition');
  check(ids.length > 0, 'HASH_MISMATCH', 'transactionIds', 'at least one id');
  return found;
}

/**
 * The docket hash of the specification: the fields and ids joined with `|`, UTF-8, SHA-256, lower-case hex.
 * @throws AppError invalid with the code of the first violation when a field has characters outside its alphabet
 */
export function docketHash(text: DocketText): string {
  const violations = checkDocketText(text);
  const first = violations[0];
  if (first !== undefined) throw new AppError('invalid', first.code, first.message, { violations });
  const { registerId, docketNumber, previousHash, timestamp, validatorAddress, transactionIds } = text;
  const fields = [
    registerId,
    String(docketNumber),
    previousHash,
    timestamp,
    validatorAddress,
    ...transactionIds,
  ];
  return sha256Hex(fields.join('|'));
}

/**
 * Builds the header of a draft.
 * @param leaves leaf hashes of the records in docket order
 * @param log the register log before this docket; it is not changed
 */
export function buildHeader(draft: DocketDraft, leaves: readonly Uint8Array[], log: Frontier): DocketHeader {
  const hash = docketHash(draft);
  const merkleRoot = encodeHex(root(leaves));
  const next = log.clone();
  next.append(logLeaf({ ...draft, hash, merkleRoot }));
  const header = {
    registerId: draft.registerId,
    docketNumber: draft.docketNumber,
    previousHash: draft.previousHash,
    timestamp: draft.timestamp,
    validatorAddress: draft.validatorAddress,
    transactionIds: draft.transactionIds,
    hash,
    merkleRoot,
    logRoot: encodeHex(next.root()),
    validatorSetHash: draft.validatorSetHash,
    isGenesis: draft.docketNumber === 0,
    sizeBytes: draft.sizeBytes,
  };
  return draft.genesisConfig === undefined ? header : { ...header, genesisConfig: draft.genesisConfig };
}

/**
 * Judges that a docket follows the head of its register (specification document 2, section 4, rule 4 of the pipeline).
 * An undefined head is the empty register.
 */
export function judgeSuccession(header: DocketText, head: DocketHead | undefined): Violation[] {
  const found: Violation[] = [];
  const isFirst = header.docketNumber === 0;
  if (head === undefined) {
    if (!isFirst)
      found.push(violation('PREVIOUS_DOCKET_REQUIRED', 'There is no previous docket', 'docketNumber'));
    else if (header.previousHash !== ZERO_HASH) {
      found.push(violation('GENESIS_REQUIRES_NO_PREVIOUS', 'Docket 0 follows nothing', 'previousHash'));
    }
    return found;
  }
  if (header.docketNumber !== head.docketNumber + 1) {
    found.push(
      violation('DOCKET_NUMBER_SEQUENCE', `Expected docket ${head.docketNumber + 1}`, 'docketNumber'),
    );
  }
  if (header.previousHash !== head.hash) {
    found.push(
      violation('PREVIOUS_HASH_MISMATCH', 'previousHash is not the hash of the head', 'previousHash'),
    );
  }
  const [then, now] = [findTimestamp(head.timestamp), findTimestamp(header.timestamp)];
  if (then === undefined || now === undefined || now <= then) {
    found.push(
      violation('TIMESTAMP_NOT_AFTER_PREVIOUS', 'The timestamp is not after that of the head', 'timestamp'),
    );
  }
  return found;
}

/**
 * Judges a header against its content: alphabet, hash, Merkle root and log root.
 * @param leaves leaf hashes of the records in docket order
 * @param log the register log before this docket; it is not changed
 */
export function judgeHeader(header: DocketHeader, leaves: readonly Uint8Array[], log: Frontier): Violation[] {
  const text = checkDocketText(header);
  if (text.length > 0) return text;
  const found: Violation[] = [];
  const expected = buildHeader(header, leaves, log);
  if (expected.hash !== header.hash)
    found.push(violation('HASH_MISMATCH', 'The hash does not recompute', 'hash'));
  if (leaves.length !== header.transactionIds.length || expected.merkleRoot !== header.merkleRoot) {
    found.push(violation('MERKLE_MISMATCH', 'The Merkle root does not recompute', 'merkleRoot'));
  } else if (expected.hash === header.hash && expected.logRoot !== header.logRoot) {
    found.push(violation('MERKLE_MISMATCH', 'The log root does not recompute', 'logRoot'));
  }
  const genesis = header.docketNumber === 0;
  if (header.isGenesis !== genesis || (header.genesisConfig !== undefined) !== genesis) {
    found.push(
      violation('HASH_MISMATCH', 'Only docket 0 is genesis, and it has a genesisConfig', 'isGenesis'),
    );
  }
  return found;
}
