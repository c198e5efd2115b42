/**
 * Names of derivation contexts and their slots. This is the only list, because a misspelt name would derive a valid key
 * that no verifier expects. `use` says what a key of the slot does:
 * `signing` signs any bytes for its owner, and for others under a grant that names the context;
 * `dedicated` signs only the statements that its own routes build, because a signature over chosen bytes would be a
 * certificate, a credential or a status list of the caller's making; `system` signs for the signing component;
 * `encryption` only decrypts; `reserved` signs nothing.
 */
const CONTEXTS = {
  'platform:register-attestation': { slot: 100, use: 'signing' },
  'platform:register-control': { slot: 101, use: 'system' },
  'platform:docket-signing': { slot: 102, use: 'system' },
  'platform:blueprint-publish': { slot: 103, use: 'dedicated' },
  'platform:persona-vault': { slot: 104, use: 'reserved' },
  'platform:credential-holder-binding': { slot: 105, use: 'dedicated' },
  'platform:haip-issuer-signing': { slot: 106, use: 'dedicated' },
  'platform:tenant-ca-signing': { slot: 107, use: 'dedicated' },
  'platform:citizen-holder': { slot: 108, use: 'dedicated' },
  'platform:citizen-status-signing': { slot: 109, use: 'dedicated' },
  'platform:payload-encryption': { slot: 110, use: 'encryption' },
  'platform:status-list-signing': { slot: 111, use: 'dedicated' },
} as const;

export type ContextName = keyof typeof CONTEXTS;
export type ContextUse = (typeof CONTEXTS)[ContextName]['use'];

export const PRIMARY_SLOT = 0;
export const REGISTER_ATTESTATION: ContextName = 'platform:register-attestation';
export const REGISTER_CONTROL: ContextName = 'platform:register-control';
export const DOCKET_SIGNING: ContextName = 'platform:docket-signing';
export const PAYLOAD_ENCRYPTION: ContextName = 'platform:payload-encryption';
export const CITIZEN_HOLDER: ContextName = 'platform:citizen-holder';
export const HAIP_ISSUER_SIGNING: ContextName = 'platform:haip-issuer-signing';
export const TENANT_CA_SIGNING: ContextName = 'platform:tenant-ca-signing';
export const STATUS_LIST_SIGNING: ContextName = 'platform:status-list-signing';

/** `undefined` for a name that is not in the list; the comparison is exact. */
export function findContext(name: string): { name: ContextName; slot: number; use: ContextUse } | undefined {
  if (!Object.hasOwn(CONTEXTS, name)) return undefined;
  const contextName = name as ContextName;
  return { name: contextName, ...CONTEXTS[contextName] };
}

/** Whether a grant may name the context. Grants of earlier releases may name others, which give no access. */
export function isGrantableContext(name: string): boolean {
  const use = findContext(name)?.use;
  return use === 'signing' || use === 'encryption';
}

/** The context at or above a path of `parseRawPath`; undefined when the path is below no context. */
export function findContextOfPath(path: string): { name: ContextName; use: ContextUse } | undefined {
  for (const name of Object.keys(CONTEXTS) as ContextName[]) {
    const { slot, use } = CONTEXTS[name];
    if (`${path}/`.startsWith(`${slotPath(slot)}/`)) return { name, use };
  }
  return undefined;
}

export function contextSlot(name: ContextName): number {
  return CONTEXTS[name].slot;
}

/** The path of a slot: every level is hardened, because SLIP-0010 defines no other children for Ed25519. */
export function slotPath(slot: number): string {
  return `m/44'/0'/0'/0'/${slot}'`;
}

const RAW_PATH = /^m(\/(0|[1-9][0-9]{0,9})['hH]){1,10}$/;
const HARDENED_LIMIT = 2 ** 31;

/** A raw path of at most ten hardened levels in the form `m/44'/0'`, or `undefined` when the text is not one. */
export function parseRawPath(text: string): string | undefined {
  if (!RAW_PATH.test(text)) return undefined;
  const levels = text.split('/').slice(1);
  const indexes = levels.map((level) => Number(level.slice(0, -1)));
  if (indexes.some((index) => index >= HARDENED_LIMIT)) return undefined;
  return `m/${indexes.map((index) => `${index}'`).join('/')}`;
}
