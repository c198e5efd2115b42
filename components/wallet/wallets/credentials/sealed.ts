import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import type { Keyring } from '../../custody/keyring.ts';
import type { Wallet } from '../records/wallet.ts';
import type { HeldCredential } from './store.ts';

/** What a credential says, which only its holder reads. */
interface CredentialContent {
  /** The credential as it was stored: a compact SD-JWT, or base64url of IssuerSigned. */
  readonly credential: string;
  readonly claims: JsonObject;
}

type Owner = Pick<Wallet, 'id' | 'address'>;

const nameOf = (id: string): string => `credential ${id}`;

export function sealContent(
  keyring: Keyring,
  wallet: Owner,
  id: string,
  content: CredentialContent,
): Promise<Buffer> {
  return keyring.sealDocument(wallet, {
    name: nameOf(id),
    document: Buffer.from(JSON.stringify(content)),
  });
}

/** The contents of credentials of a wallet, in their order. @throws AppError internal CUSTODY_TAMPERED, KEK_UNKNOWN */
export async function openContents(
  keyring: Keyring,
  wallet: Owner,
  credentials: readonly Pick<HeldCredential, 'id' | 'sealed'>[],
): Promise<readonly CredentialContent[]> {
  if (credentials.length === 0) return [];
  const documents = credentials.map(({ id, sealed }) => ({ name: nameOf(id), sealed }));
  const opened = await keyring.openDocuments(wallet, documents);
  return opened.map((document) => {
    const { credential, claims } = JSON.parse(document.toString('utf8'));
    document.fill(0);
    return { credential: String(credential), claims: isJsonObject(claims) ? claims : {} };
  });
}
