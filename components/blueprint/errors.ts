import { AppError, type ErrorKind, genericCode, type Violation } from '#core/errors/errors.ts';
import { createRefusals, type DeclaredRefusal } from '#kit/http/http.ts';

/** Error codes of this component, on which clients can match. */
const codes = {
  // Definitions
  BLUEPRINT_NOT_FOUND: ['not_found', 'the blueprint does not exist in your organisation'],
  PUBLICATION_NOT_FOUND: ['not_found', 'the blueprint has no such publication that you may read'],
  BLUEPRINT_ID_TAKEN: ['conflict', 'the id of the blueprint is taken'],
  BLUEPRINT_INVALID: ['invalid', 'the definition has faults; `errors` lists them'],
  DEFINITION_TOO_LARGE: ['too_large', 'a definition may have 524288 bytes of canonical JSON at most'],
  BLUEPRINT_UNAVAILABLE: [
    'unprocessable',
    'the definition needs a service that is not configured; `errors` lists what for',
  ],
  BLUEPRINT_ID_FIXED: ['invalid', 'the id of a blueprint cannot be changed'],
  REVISION_MISMATCH: ['precondition_failed', 'the draft was changed since; read it again'],
  ORGANIZATION_REQUIRED: ['forbidden', 'drafts belong to organisations; the token names none'],
  DRAFT_LIMIT: ['unprocessable', 'your organisation has reached the number of drafts that it may have'],
  DRAFT_JUDGING_BUSY: ['unavailable', 'too many drafts are being judged; try again'],
  DRAFT_TOO_COMPLEX: [
    'unprocessable',
    'the definition takes too long; make its schemas and conditions simpler',
  ],
  DEFINITION_UNUSABLE: ['unprocessable', 'the publication is no definition that can be evaluated'],
  SCHEMA_REFUSED: ['unprocessable', 'a data schema of the definition cannot be used'],
  LOGIC_REFUSED: ['unprocessable', 'a condition or calculation of the definition cannot be used'],
  LOGIC_NO_TEXT: ['unprocessable', 'a calculation joins an object to a text'],
  // Chat
  AI_UNAVAILABLE: ['unavailable', 'no language model is available; the draft can be saved and exported'],
  ANSWER_LIMIT: ['unprocessable', 'the answer is too long, or takes too long; ask for less at one time'],
  CHAT_SESSION_UNKNOWN: ['gone', 'the session has ended, or is one of another connection'],
  CHAT_SESSION_OPEN: ['conflict', 'the connection has a session; end it first'],
  CHAT_ANSWERING: ['conflict', 'a message is being answered; wait for the end, or cancel it'],
  CHAT_NOT_ANSWERING: ['conflict', 'no message is being answered'],
  CHAT_NO_DEFINITION: ['conflict', 'the session has no definition yet'],
  MESSAGE_LIMIT: ['rate_limited', 'the session has no room for further messages; start another one'],
  EXPORT_TOO_LARGE: ['too_large', 'the exported definition would have more than 1048576 bytes'],
  // Publishing
  REHEARSAL_REQUIRED: [
    'conflict',
    'this behaviour of the blueprint passed no rehearsal; rehearse or override',
  ],
  PUBLISH_ROLE_REQUIRED: [
    'forbidden',
    'publishing needs Owner, Admin or Designer on the roster of the register',
  ],
  GOVERNANCE_ROSTER_NOT_SEALED: [
    'unavailable',
    'the roster of the register is not sealed yet, or the register is unknown',
  ],
  GOVERNANCE_ROSTER_UNAVAILABLE: ['unavailable', 'the roster of the register cannot be read at present'],
  REGISTER_REFUSED: ['bad_gateway', 'the register refused the publication; nothing was stored'],
  REGISTER_UNAVAILABLE: ['unavailable', 'the register service cannot be reached at present'],
  WALLETS_UNAVAILABLE: ['unavailable', 'the wallet service cannot be reached at present'],
  // Rehearsals
  REHEARSAL_NOT_FOUND: ['not_found', 'the rehearsal does not exist'],
  REHEARSAL_ENDED: ['unprocessable', 'the rehearsal has ended'],
  REHEARSAL_MODE_UNSUPPORTED: ['unprocessable', 'a rehearsal has the mode full'],
  REHEARSAL_LIMIT: ['unprocessable', 'your organisation has too many rehearsals under way'],
  ROLE_UNKNOWN: ['unprocessable', 'the blueprint has no such participant'],
  ROLE_MISMATCH: ['unprocessable', 'the acting role does not take this action'],
  STEP_NOT_CURRENT: ['unprocessable', 'the action is not current'],
  // Instances and actions
  REGISTER_NOT_FOUND: ['not_found', 'the register does not exist or is not visible to you'],
  BLUEPRINT_NOT_AVAILABLE: ['conflict', 'the publication has not arrived here yet; try again'],
  NOT_PUBLISHED: ['conflict', 'the blueprint is not published on this register'],
  VALIDATOR_TOO_OLD: ['unavailable', 'a validator of the register does not judge workflows yet'],
  INSTANCE_NOT_FOUND: ['not_found', 'the instance does not exist'],
  INSTANCES_REBUILDING: [
    'unavailable',
    'the instances of a register are read from its ledger again; try again',
  ],
  INSTANCE_ACCESS_DENIED: ['forbidden', 'you control no wallet of this instance'],
  INSTANCE_REQUIRED: ['invalid', 'only a starting action begins an instance; name the instance'],
  INSTANCE_TERMINAL: ['conflict', 'the instance has ended'],
  INSTANCE_STARTED: ['conflict', 'the instance has begun; it ends by its routes and rejections'],
  PIN_UNRESOLVABLE: ['conflict', 'the definition of the instance cannot be resolved here'],
  VAL_BP_VERSION_001: [
    'unprocessable',
    'the definition of the instance cannot be resolved here; no other version takes its place',
  ],
  ACTION_NOT_FOUND: ['not_found', 'the blueprint has no such action'],
  ACTION_NOT_CURRENT: ['conflict', 'the action is not current'],
  ACTION_BLOCKED: ['conflict', 'the action waits for others'],
  STALE_PREDECESSOR: ['conflict', 'previousTransactionHash is not the last transaction of the instance'],
  WALLET_NOT_OWNED: ['forbidden', 'the wallet is not yours'],
  SENDER_NOT_PARTICIPANT: ['forbidden', 'the wallet is not that of the participant who takes this action'],
  STATE_INCOMPLETE: ['unprocessable', 'earlier actions that this one reads cannot be opened'],
  CREDENTIAL_REQUIREMENT_FAILED: ['unprocessable', 'a credential requirement is not met'],
  PAYLOAD_INVALID: ['unprocessable', 'the payload violates its schema; `errors` lists how'],
  PAYLOAD_TOO_LARGE: ['too_large', 'the payload is larger than the register takes'],
  CALC_CYCLE: ['unprocessable', 'calculations read each other in a circle'],
  CALC_NOT_FINITE: ['unprocessable', 'a calculation gives no finite number'],
  LOGIC_BUDGET_EXCEEDED: ['unprocessable', 'calculations and conditions take too many steps'],
  NO_ROUTE: ['unprocessable', 'no route of the action applies'],
  ROUTING_TOO_LARGE: ['unprocessable', 'the state of the instance does not fit in a record'],
  RECIPIENT_REVOKED: ['unprocessable', 'a recipient is revoked, on the register or by its organisation'],
  RECIPIENT_KEY_UNRESOLVED: ['unprocessable', 'a recipient has no key for payloads'],
  SIGNING_REFUSED: ['forbidden', 'the wallet service refused to sign'],
  SIGNING_FAILED: ['bad_gateway', 'the wallet service could not sign'],
  VAL_CHAIN_FORK: ['conflict', 'other actions of the instance were first; try again'],
  REJECTION_NOT_ALLOWED: ['conflict', 'the action cannot be rejected'],
  REJECTION_REASON_REQUIRED: ['invalid', 'the rejection needs a reason'],
  DELEGATION_INVALID: ['forbidden', 'X-Delegation-Token is not a delegated token of the caller'],
  AUTHORITY_EXPIRED: ['forbidden', 'the authority of the operation ended before it was done'],
  SUBMISSION_REFUSED: ['unprocessable', 'the validators refused the transaction'],
  SUBMISSION_EXPIRED: ['unavailable', 'the transaction was not sealed in time; nothing was done'],
  OPERATION_NOT_FOUND: ['not_found', 'the operation does not exist'],
  // Files
  INLINE_FILE_INVALID: ['invalid', 'an inline file is malformed; `errors` says which'],
  INLINE_FILE_TOO_LARGE: ['too_large', 'an inline file may have 1 MiB, those of a request 6 MiB together'],
  INLINE_FILE_ABSENT: ['invalid', 'the payload names an inline file that the request does not have'],
  INLINE_FILE_UNPLACED: ['invalid', 'no field of the payload takes an inline file of the request'],
  CHUNK_INVALID: ['invalid', 'the chunk is malformed'],
  CHUNK_CONFLICT: ['conflict', 'another chunk was stored at this place of the upload'],
  CHUNK_TOO_LARGE: ['too_large', 'a chunk may have 4 MiB and 40 bytes at most'],
  FILE_QUOTA: ['unprocessable', 'your organisation has no room for further files'],
  CHUNK_NOT_FOUND: ['not_found', 'the register has no such chunk here'],
  CHUNK_PURGED: ['gone', 'the chunk was deleted'],
  TX_NOT_FOUND: ['not_found', 'no instance here has such a sealed step'],
  NOT_A_RECIPIENT: ['forbidden', 'the step has no content for this wallet'],
  DECRYPT_FAILED: ['unprocessable', 'the content for this wallet cannot be opened'],
  FILE_NOT_FOUND: ['not_found', 'the content for this wallet has no such file'],
  FILE_PURGED: ['gone', 'the content of the file was deleted'],
  FILE_CORRUPT: ['unprocessable', 'the stored content is not that of the file'],
  FILES_UNAVAILABLE: ['unavailable', 'the content of files cannot be read at present'],
  DOWNLOAD_STALLED: ['timeout', 'the reader took nothing for too long; the download was aborted'],
  DOWNLOAD_LIMIT: ['rate_limited', 'too many downloads are running; try again later'],
} as const satisfies Record<string, readonly [ErrorKind, string]>;

/** Declares codes as refusals of a route. */
export const refusals = createRefusals(codes);

/** Codes of the rules of definitions, of which a refused definition answers the first. */
export const ofDefinitionRules: readonly DeclaredRefusal[] = [
  { code: 'VAL_BP_*', kind: 'invalid', message: 'The definition has faults; `errors` lists them.' },
  {
    code: 'VAL_BP_*',
    kind: 'unprocessable',
    message: 'The definition needs credentials, which no service issues.',
  },
];

type BlueprintErrorCode = keyof typeof codes;

interface RefusalOptions {
  readonly cause?: unknown;
  readonly message?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  readonly violations?: readonly Violation[];
}

/** Creates the error of a code; `message` replaces the text of the table. */
export function refusal(code: BlueprintErrorCode, options: RefusalOptions = {}): AppError {
  const [kind, text] = codes[code];
  const { message, ...rest } = options;
  return new AppError(kind, code, message ?? text, rest);
}

/** The error of a code that a row holds: one of the table, or a validator's. */
export function storedRefusal(code: string, message: string): AppError {
  const known = Object.entries(codes).find(([name]) => name === code);
  return new AppError(known === undefined ? 'unprocessable' : known[1][0], code, message);
}

/** What validators refuse a transaction for. */
export const validatorRefusals: readonly DeclaredRefusal[] = [
  { code: 'VAL_*', kind: 'unprocessable', message: 'the validators refused the transaction' },
];

/** The error of a malformed request. */
export function invalid(message: string): AppError {
  return new AppError('invalid', genericCode('invalid'), message);
}
