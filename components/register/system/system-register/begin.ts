import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { type AttestDeps, verifyReturned } from '../../registers/creation/attest.ts';
import { type BeginDeps, beginRegister } from '../../registers/creation/begin.ts';
import { type Draft, requestAttestations } from '../../registers/creation/draft.ts';
import { firstPolicy } from '../../registers/creation/initiate.ts';
import type { NamedSet } from '../../registers/directory/default-set.ts';

export interface BeginSystemDeps extends BeginDeps {
  readonly wallets: Pick<Wallets, 'systemKey' | 'signOwnership'>;
  readonly verifier: AttestDeps['verifier'];
  readonly namedSet: NamedSet;
  readonly registerId: string;
}

export const systemRegisterTitle = 'System register';
const description = 'Blueprints that every register of this installation may rely on.';

/**
 * Creates the system register, owned by the installation itself, with exactly these validators. No effect if it was
 * created meanwhile.
 */
export async function beginSystemRegister(
  deps: BeginSystemDeps,
  validatorIds: readonly string[],
): Promise<void> {
  const { registerId, wallets, clock } = deps;
  const title = systemRegisterTitle;
  const grantedAt = formatLedgerTimestamp(clock.nowMicros());
  const { walletAddress } = await wallets.systemKey();
  const attestations = requestAttestations({ registerId, title, grantedAt }, [
    { walletAddress, role: 'Owner' },
  ]);
  const draft: Draft = {
    registerId,
    title,
    description,
    purpose: 'System',
    devMode: false,
    advertise: false,
    metadata: {},
    policyText: JSON.stringify(firstPolicy({ purpose: 'System' })),
    attestations,
  };
  const { signature, key } = await wallets.signOwnership({ registerId, registerName: title, grantedAt });
  const signed = { publicKey: key.publicKey, algorithm: key.algorithm, signature: encodeBase64(signature) };
  const roster = attestations.flatMap((requested) => verifyReturned(requested, signed, deps.verifier) ?? []);
  if (roster.length === 0) throw refusal('ATTESTATION_INVALID');
  const validators = await deps.namedSet(registerId, validatorIds);
  const beginning = { draft, organizationId: SYSTEM_ORGANIZATION_ID, roster, validators };
  try {
    await beginRegister(deps, beginning, async () => true);
  } catch (error) {
    if (!isAppError(error) || error.code !== 'REGISTER_EXISTS') throw error;
  }
}

/** DID of the installation, which owns the system register and publishes its initial blueprints. */
export async function installationDid(wallets: Pick<Wallets, 'systemKey'>): Promise<string> {
  return memberDid((await wallets.systemKey()).walletAddress);
}
