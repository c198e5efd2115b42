import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { createRefusals, type DeclaredRefusal } from '#kit/http/http.ts';

/** Every error code that only this component answers. */
const codes = {
  REGISTER_NOT_FOUND: ['not_found', 'The register does not exist or is not visible to your organisation.'],
  CURSOR_UNREADABLE: ['internal', 'The stored position in the events of the wallet service is malformed.'],
  EVENT_UNREADABLE: ['internal', 'An event of the wallet service has no position.'],
  REGISTER_NOT_READY: ['unavailable', 'The register is not online yet.'],
  REGISTER_HALTED: [
    'conflict',
    'Two certificates for one height were seen; the register is halted until an operator resumes it.',
  ],
  REGISTER_NOT_HALTED: ['conflict', 'The register is not halted.'],
  REGISTER_DELETED: ['gone', 'The register of this UID was deleted, or the UID was released from it.'],
  REGISTER_BOUND: ['conflict', 'The register belongs to another custom resource.'],
  REGISTER_OF_ANOTHER_ORGANIZATION: ['conflict', 'The register belongs to another organisation.'],
  UID_BOUND: ['conflict', 'The custom resource has another register.'],
  CHANGE_OUTSTANDING: ['conflict', 'A change of the same kind is pending; wait until it is sealed.'],
  REGISTER_EXISTS: ['conflict', 'A register with this id exists.'],
  SUBSCRIPTION_REQUIRED: ['forbidden', 'Your organisation does not subscribe to this register.'],
  NOT_ON_ROSTER: ['forbidden', 'You hold no wallet of a member on the roster.'],
  SYSTEM_REGISTER_PROTECTED: ['forbidden', 'Registers of the system cannot be deleted.'],
  DELETE_NOT_ATTESTED: ['forbidden', 'Deleting needs the wallet of an Owner or Admin of the roster.'],
  IMMUTABLE_FIELD: ['invalid', 'id, status, purpose and devMode cannot be set.'],
  POLICY_VERSION_CONFLICT: ['conflict', 'The version of a policy update is the current one and one more.'],
  POLICY_UPDATE_REJECTED: ['unprocessable', 'The validators refused the update.'],
  INVALID_POLICY: ['invalid', 'The policy is not valid.'],
  TRANSITION_MODE_REQUIRED: [
    'invalid',
    'A policy that changes from public to consent must name its transitionMode.',
  ],
  BLUEPRINT_NOT_FOUND: [
    'not_found',
    'The blueprint, or this version of it, is not published on the register.',
  ],
  PUBLISH_ROLE_REQUIRED: [
    'forbidden',
    'callerDid is no Owner, Admin or Designer on the roster of the register.',
  ],
  GOVERNANCE_ROSTER_NOT_SEALED: ['unavailable', 'The roster of the register is not sealed yet.'],
  EXEC_DEF_HASH_MISMATCH: ['unprocessable', 'execDefHash does not match the definition.'],
  DEV_MODE_ALREADY_DISABLED: ['conflict', 'The register is not in development mode.'],
  PROPOSAL_NOT_FOUND: ['not_found', 'The proposal does not exist.'],
  PROPOSAL_CLOSED: ['conflict', 'The proposal is not open any more.'],
  VALIDATOR_NOT_FOUND: ['not_found', 'The validator is unknown on this register.'],
  SENDER_NOT_AUTHORIZED: ['forbidden', 'You may not sign with this sender address.'],
  OWNER_WALLET_REQUIRED: [
    'unprocessable',
    'Name an owner wallet: neither you nor your organisation has one.',
  ],
  IDEMPOTENCY_IN_PROGRESS: ['conflict', 'Another call is creating this register; retry.'],
  REGISTRATION_NOT_FOUND: ['not_found', 'There is no open registration with this id.'],
  REGISTRATION_EXPIRED: ['gone', 'The registration expired; initiate a new one.'],
  REGISTRATION_FINALIZED: ['conflict', 'The register was finalised already.'],
  REGISTRATION_LIMIT: ['rate_limited', 'Too many open registrations in this organisation.'],
  ATTESTATION_INVALID: ['unauthenticated', 'The nonce or an attestation does not verify.'],
  OWNER_ATTESTATION_MISSING: ['invalid', 'The attestation of an owner is missing.'],
  VALIDATOR_UNAVAILABLE: ['unavailable', 'No validator of this register can be reached.'],
  VALIDATORS_UNREACHABLE: ['bad_gateway', 'No validator of this register can be reached.'],
  VALIDATOR_SET_UNAVAILABLE: ['bad_gateway', 'The validators of the new register did not all answer.'],
  SYSTEM_KEY_CHANGED: ['conflict', 'The wallet service signed with another key.'],
  VALIDATOR_KEY_CHANGED: ['conflict', 'This validator has announced another key before.'],
  TX_NOT_FOUND: ['not_found', 'The transaction is unknown on this register.'],
  TX_NOT_SEALED: ['conflict', 'The transaction is not sealed in a docket yet.'],
  TRANSACTION_TOO_LARGE: ['too_large', 'A transaction record may have 524288 bytes at most.'],
  KEYS_BUSY: ['unavailable', 'The keys of a register are being read for this validator; retry later.'],
  DOCKET_NOT_FOUND: ['not_found', 'The docket does not exist.'],
  DOCKET_DIVERGENCE: ['conflict', 'Another docket is stored under this number.'],
  DOCKET_OUT_OF_ORDER: ['conflict', 'The docket does not follow the head of the register.'],
  SOURCE_SILENT: ['timeout', 'no docket arrived in time'],
  SOURCE_EXHAUSTED: ['unavailable', 'it has no more dockets'],
  NO_PENDING_TRANSACTIONS: ['conflict', 'No transaction is pending.'],
  QUORUM_UNAVAILABLE: ['unavailable', 'The validators cannot reach a quorum now.'],
  CONSENSUS_TIMEOUT: ['timeout', 'The docket was not sealed in time.'],
  TREE_SIZE_INVALID: ['invalid', 'from and to must satisfy 1 <= from <= to <= height.'],
  CURSOR_UNKNOWN: ['invalid', 'The cursor names no transaction of this register.'],
  ENTITY_NOT_FOUND: ['not_found', 'The entity does not exist or is not visible to your organisation.'],
  QUERY_INVALID: ['invalid', 'The query cannot be read.'],
  QUERY_NOT_SUPPORTED: ['not_implemented', 'The query uses a part of OData that is not supported.'],
  QUERY_TOO_BROAD: ['invalid', 'The query would read too many rows; narrow the filter.'],
  QUERY_TIMEOUT: ['timeout', 'The query took too long; narrow the filter.'],
  EXPORT_LIMIT: [
    'rate_limited',
    'You have reached the limit of concurrent exports; retry when one of them has ended.',
  ],
  EXPORTS_BUSY: ['unavailable', 'The service has reached its limit of concurrent exports; retry later.'],
  PAGE_TOO_DEEP: ['invalid', 'Filtered lists page to 10000 items; continue with the cursor of "next".'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

type RegisterErrorCode = keyof typeof codes;

/** Codes of other services and of the core that routes pass on. */
const passedOn = {
  TX_CONFLICT: ['conflict', 'Another transaction has this id.'],
  MEMPOOL_FULL: ['rate_limited', 'The memory pool is full; retry later.'],
  REGISTER_BEHIND: ['unavailable', 'The validator has not decided the latest dockets yet; retry.'],
  VALIDATION_STOPPED: ['conflict', 'The validation of the register is stopped.'],
  VALIDATOR_DRAINING: ['unavailable', 'The validator is draining.'],
  VALIDATOR_PAUSED: ['unavailable', 'The validator is paused.'],
  SEALING_STOPPED: ['unavailable', 'The validator has stopped sealing.'],
  JOURNAL_UNAVAILABLE: ['unavailable', 'The log of the validator cannot be written.'],
  SIGNING_KEYS_EXHAUSTED: ['conflict', 'The validator has the maximum number of keys.'],
  SIGNER_UNAVAILABLE: ['unavailable', 'The signer of the validator does not answer.'],
  WALLET_LOCKED: ['locked', 'The wallet is locked.'],
  WALLET_DELETED: ['gone', 'The wallet is deleted.'],
  PERSON_REQUIRED: ['forbidden', 'The token belongs to a service, which has no wallets.'],
  VAL_STRUCT_012: ['invalid', 'A text of the body has no canonical JSON.'],
  VAL_SCHEMA_001: ['unprocessable', 'The definition has faults; `errors` lists them.'],
  MECHANISM_NOT_SUPPORTED: ['unprocessable', 'Only the rotating leader election is supported.'],
  TIMEOUT: ['timeout', 'Another service did not answer in time.'],
  BAD_GATEWAY: ['bad_gateway', 'A validator sent an answer that cannot be read.'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals({ ...codes, ...passedOn });

/** Codes of the rules of the ledger (`#core/errors/validation-codes.ts`), under each status that they have. */
const ofLedgerRules: readonly DeclaredRefusal[] = (
  ['invalid', 'forbidden', 'too_large', 'unprocessable', 'unavailable'] as const
).map((kind) => ({
  code: 'VAL_*',
  kind,
  message: 'A rule of the ledger is violated; `errors` lists the violations.',
}));

const invalidDocket = [
  'DOCKET_NUMBER_SEQUENCE',
  'GENESIS_REQUIRES_NO_PREVIOUS',
  'HASH_MISMATCH',
  'MERKLE_MISMATCH',
  'PREVIOUS_DOCKET_REQUIRED',
  'PREVIOUS_HASH_MISMATCH',
  'REGISTER_ID_REQUIRED',
  'TIMESTAMP_NOT_AFTER_PREVIOUS',
  'VAL_*',
];

/** Codes of a docket that violates a rule: those of its header (`#core/ledger/docket.ts`) and of its content. */
export const ofInvalidDocket: readonly DeclaredRefusal[] = invalidDocket.map((code) => ({
  code,
  kind: 'unprocessable',
}));

/** Refusals of a route that calls the wallet service. */
export const ofWallets = refusals('WALLET_LOCKED', 'WALLET_DELETED', 'TIMEOUT');

/** Refusals of a route that gives the checkpoint of a register. */
export const ofCheckpoint = [...ofWallets, ...refusals('REGISTER_NOT_READY')];

/** Refusals of a route that signs and submits a transaction, with those of the validator. */
export const ofSubmission: readonly DeclaredRefusal[] = [
  ...ofLedgerRules,
  ...ofWallets,
  ...refusals('SENDER_NOT_AUTHORIZED', 'TX_CONFLICT', 'MEMPOOL_FULL', 'REGISTER_NOT_FOUND'),
  ...refusals('REGISTER_NOT_READY', 'REGISTER_BEHIND', 'VALIDATOR_UNAVAILABLE', 'VALIDATOR_DRAINING'),
  ...refusals('VALIDATOR_PAUSED', 'SEALING_STOPPED', 'JOURNAL_UNAVAILABLE', 'BAD_GATEWAY'),
];

/** Refusals of a route that asks a validator for a proof of possession of its key. */
export const ofPossession = refusals(
  'VALIDATOR_NOT_FOUND',
  'VALIDATOR_KEY_CHANGED',
  'SIGNING_KEYS_EXHAUSTED',
  'SIGNER_UNAVAILABLE',
  'TIMEOUT',
);

/** Refusals of a route whose `resource` is a visible register. */
export const ofVisibleRegister = refusals('REGISTER_NOT_FOUND');

/** Refusals of a route whose `resource` is a writable register. */
export const ofWritableRegister = refusals(
  'REGISTER_NOT_FOUND',
  'SUBSCRIPTION_REQUIRED',
  'REGISTER_HALTED',
  'REGISTER_NOT_READY',
);

interface RefusalOptions {
  readonly kind?: ErrorKind;
  readonly cause?: unknown;
  readonly message?: string;
  readonly details?: Record<string, unknown>;
  readonly retryAfterSeconds?: number;
}

/** An AppError from this component's table; `message` and `kind` replace those of the table. */
export function refusal(code: RegisterErrorCode, options: RefusalOptions = {}): AppError {
  const [usualKind, text] = codes[code];
  const { kind = usualKind, message, ...rest } = options;
  return new AppError(kind, code, message ?? text, rest);
}
