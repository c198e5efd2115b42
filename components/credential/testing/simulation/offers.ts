import {
  countWrongTxCode,
  isOpen,
  type ModelOffer,
  type ModelToken,
  type SimulatedWallet,
  TOKEN_MS,
} from './model.ts';
import type { Step } from './steps.ts';
import { accepted, atOnce, pick, type World } from './world.ts';

type Of<A extends Step['act']> = Extract<Step, { act: A }>;

export const typeName = (type: number): string => `Simulated ${type}`;
export const vctOf = (type: number): string => `urn:platform:credential:simulated-${type}`;

export async function offer(world: World, step: Of<'offer'>): Promise<void> {
  const claims = { permitNumber: `P-${world.offers.length}`, area: 620 };
  const boundTo = step.boundTo === undefined ? undefined : world.stage.wallets[step.boundTo];
  const { expiresInSeconds, validitySeconds } = step;
  const answer = await world.wallet.offer({
    credentialType: typeName(step.type),
    claims,
    expiresInSeconds,
    ...(step.hasTxCode && { txCode: {} }),
    ...(validitySeconds !== undefined && { validitySeconds }),
    ...(boundTo !== undefined && { holderJwkThumbprint: boundTo.keys[0]?.thumbprint }),
  });
  accepted(world, 'offer', { answers: [answer], expected: 1 });
  const made = answer.json();
  const { issuer_state: state } = made.credentialOffer.grants.authorization_code ?? {};
  world.offers.push({
    id: made.offerId,
    code: made.preAuthorizedCode ?? state,
    txCode: made.txCode,
    type: step.type,
    configurationId: made.credentialOffer.credential_configuration_ids[0],
    claims,
    validitySeconds,
    boundTo,
    expiresAtMs: world.nowMs + expiresInSeconds * 1000,
    status: 'Pending',
    wrongTxCodes: 0,
  });
}

/** Only an offer that a wallet took cannot be cancelled. */
export async function cancel(world: World, step: Of<'cancel'>): Promise<void> {
  const found = pick(world.offers, step.offer);
  if (found === undefined) return;
  const answer = await world.stage.fixture.app.inject({
    method: 'DELETE',
    url: `/api/v1/offers/${found.id}`,
    headers: { authorization: 'Bearer service' },
  });
  const expected = found.status === 'Exchanged' ? 0 : 1;
  accepted(world, 'cancel', { answers: [answer], expected });
  if (found.status === 'Pending') found.status = 'Expired';
}

/** A transaction code that is none of this offer's. */
export const wrongTxCode = ({ txCode = '' }: ModelOffer): string => `${txCode}0`;

/** The token endpoint of openid4vc-1.0: the code of an offer. */
export async function token(world: World, step: Of<'token'>): Promise<void> {
  const found = pick(world.offers, step.offer);
  if (found === undefined) return;
  const { how } = step;
  const txCode = sentTxCode(found, how);
  const code = how === 'unknown' ? 'a'.repeat(43) : found.code;
  const form = { 'pre-authorized_code': code, ...(txCode !== undefined && { tx_code: txCode }) };
  const wallet = world.walletOf(step, found.boundTo);
  const isBound = how === 'bound';
  const send = async () => world.wallet.token(form, isBound ? await dpopHeaders(world, wallet) : {});
  const isLive = how !== 'unknown' && isOpen(found, world.nowMs);
  const isRight = txCode === found.txCode;
  const answers = await atOnce(how === 'thrice' ? 3 : 1, send);
  const good = accepted(world, `token ${how}`, { answers, expected: isLive && isRight ? 1 : 0 });
  if (isLive && !isRight && txCode !== undefined && found.txCode !== undefined) countWrongTxCode(found);
  for (const answer of good) {
    found.status = 'Exchanged';
    world.tokens.push(tokenOf(world, answer.json().access_token, { offer: found, wallet, isBound }));
  }
}

function sentTxCode(found: ModelOffer, how: Of<'token'>['how']): string | undefined {
  if (how === 'without') return undefined;
  return how === 'wrong' ? wrongTxCode(found) : found.txCode;
}

async function dpopHeaders({ wallet: client }: World, wallet: SimulatedWallet) {
  return { dpop: await client.dpop(wallet.dpopKey, { path: '/token', nonce: await client.dpopNonce() }) };
}

/** A token as the model has it. */
export function tokenOf(
  { nowMs }: World,
  text: string,
  owner: Pick<ModelToken, 'offer' | 'wallet' | 'isBound'>,
): ModelToken {
  return { ...owner, text, expiresAtMs: nowMs + TOKEN_MS, issued: 0, isEnded: false };
}
