import { type Derivation, resolveDerivation } from '../custody/derivation.ts';
import { refusal } from '../errors.ts';
import { type AuthorityDeps, personOf } from '../grants/authority.ts';
import { judgeDelegatedUse, openContexts } from '../grants/delegation.ts';
import { findOpenGrants, type Grant } from '../grants/store.ts';
import { listOfService, listUsable } from '../wallets/records/store.ts';
import { isOwner, type Wallet, type WalletCaller } from '../wallets/records/wallet.ts';
import { signable } from './sign.ts';

type UsableDeps = Pick<AuthorityDeps, 'db' | 'clock'>;

/**
 * Active wallets that the caller may sign with under a derivation path, or under any when it is absent: own wallets,
 * oldest first, then those that grants open.
 * @throws AppError invalid UNKNOWN_DERIVATION_CONTEXT, forbidden DERIVATION_CONTEXT_RESERVED, PERSON_REQUIRED
 */
export async function listUsableWallets(
  deps: UsableDeps,
  caller: WalletCaller,
  derivationPath: string | undefined,
): Promise<Wallet[]> {
  const derivation = derivationPath === undefined ? undefined : signingDerivation(derivationPath);
  const derives = derivation !== undefined && derivation.use !== 'primary';
  const wallets = await listCandidates(deps, caller);
  const grants = await grantsOf(deps, caller, wallets);
  return wallets.filter((wallet) => {
    if (derives && wallet.keyType === 'RSA') return false;
    if (isOwner(wallet, caller)) return true;
    return mayDelegate(wallet, caller, {
      grant: grants.get(wallet.id),
      derivation,
      nowMs: deps.clock.nowMs(),
    });
  });
}

function signingDerivation(path: string): Derivation {
  const derivation = resolveDerivation(path);
  if (derivation === undefined) throw refusal('UNKNOWN_DERIVATION_CONTEXT');
  if (!signable.includes(derivation.use)) throw refusal('DERIVATION_CONTEXT_RESERVED');
  return derivation;
}

function listCandidates({ db, clock }: UsableDeps, caller: WalletCaller): Promise<Wallet[]> {
  return caller.kind === 'service'
    ? listOfService(db.read, caller.clientId)
    : listUsable(db.read, {
        platformUserId: personOf(caller),
        organizationId: caller.organizationId,
        nowMs: clock.nowMs(),
      });
}

async function grantsOf({ db }: UsableDeps, caller: WalletCaller, wallets: readonly Wallet[]) {
  const foreign = wallets.filter((wallet) => !isOwner(wallet, caller));
  const none: ReadonlyMap<string, Grant> = new Map();
  if (foreign.length === 0) return none;
  return findOpenGrants(
    db.read,
    personOf(caller),
    foreign.map(({ id }) => id),
  );
}

interface DelegatedSigning {
  readonly grant: Grant | undefined;
  readonly derivation: Derivation | undefined;
  readonly nowMs: number;
}

function mayDelegate(
  wallet: Wallet,
  caller: WalletCaller,
  { grant, derivation, nowMs }: DelegatedSigning,
): boolean {
  const contexts = derivation === undefined ? openContexts(grant ?? noGrant) : [derivation.context];
  return contexts.some((context) => {
    if (context !== undefined && resolveDerivation(context)?.use !== 'signing') return false;
    const failed = judgeDelegatedUse({
      purpose: 'sign',
      owningOrganizationId: wallet.ownerOrganizationId,
      callerOrganizationId: caller.organizationId,
      callerIsAdministrator: caller.roles.includes('Administrator'),
      grant,
      context,
      hybridMode: false,
      nowMs,
    });
    return failed === undefined;
  });
}

const noGrant = { allowedContexts: [] };
