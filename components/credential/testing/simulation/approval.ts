import { createHash, randomBytes } from 'node:crypto';
import {
  CODE_MS,
  countWrongTxCode,
  isOpen,
  type ModelCode,
  type ModelOffer,
  type ModelPushed,
  PUSHED_MS,
  REFRESH_MS,
  type SimulatedWallet,
} from './model.ts';
import { tokenOf, wrongTxCode } from './offers.ts';
import type { Step } from './steps.ts';
import { accepted, atOnce, pick, type World } from './world.ts';

type Of<A extends Step['act']> = Extract<Step, { act: A }>;

const clientId = 'https://wallet.test';
const redirectUri = 'eudi-wallet://back';

function post(
  { stage }: World,
  url: string,
  { fields, headers = {} }: { fields: Readonly<Record<string, string>>; headers?: Record<string, string> },
) {
  return stage.fixture.app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString(),
  });
}

const attested = ({ stage, wallet }: World, { instance }: SimulatedWallet) =>
  stage.attester.headers(instance, wallet.nowSeconds);

/** The way to a token in haip-1.0: pushed request, approval, exchange. A step that is refused ends it. */
export async function approvedToken(world: World, step: Of<'token'>): Promise<void> {
  const offer = pick(world.offers, step.offer);
  if (offer === undefined) return;
  const wallet = world.walletOf(step, offer.boundTo);
  const pushed = await push(world, { offer, wallet, how: step.how });
  if (pushed === undefined) return;
  const isRight = step.how !== 'wrong' && step.how !== 'without';
  const code = await approvePushed(world, pushed, isRight);
  if (code !== undefined)
    await exchangeCode(world, code, { wallet, how: step.how === 'thrice' ? 'thrice' : 'right' });
}

interface Push {
  readonly offer: ModelOffer;
  readonly wallet: SimulatedWallet;
  readonly how: Of<'token'>['how'];
}

async function push(world: World, { offer, wallet, how }: Push): Promise<ModelPushed | undefined> {
  const [isUnknown, isBound] = [how === 'unknown', how === 'bound'];
  const verifier = randomBytes(32).toString('base64url');
  const fields = {
    response_type: 'code',
    client_id: clientId,
    issuer_state: isUnknown ? 'a'.repeat(43) : offer.code,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: offer.configurationId,
  };
  const headers = {
    ...(await attested(world, wallet)),
    ...(isBound && { dpop: await dpopOf(world, wallet, '/par') }),
  };
  const answer = await post(world, '/par', { fields, headers });
  const expected = !isUnknown && isOpen(offer, world.nowMs) ? 1 : 0;
  const [good] = accepted(world, 'push', { answers: [answer], expected });
  if (good === undefined) return undefined;
  const pushed: ModelPushed = {
    requestUri: good.json().request_uri,
    offer,
    verifier,
    boundTo: isBound ? wallet : undefined,
    expiresAtMs: world.nowMs + PUSHED_MS,
    isGone: false,
  };
  world.pushed.push(pushed);
  return pushed;
}

export async function approve(world: World, step: Of<'approve'>): Promise<void> {
  const pushed = pick(world.pushed, step.pushed);
  if (pushed !== undefined) await approvePushed(world, pushed, step.isRight);
}

/** The person types a transaction code. The answer is a page, or an address with a code or a refusal. */
async function approvePushed(
  world: World,
  pushed: ModelPushed,
  isRight: boolean,
): Promise<ModelCode | undefined> {
  const { offer, requestUri } = pushed;
  const tx_code = isRight ? (offer.txCode ?? '') : wrongTxCode(offer);
  const isLive = !pushed.isGone && pushed.expiresAtMs > world.nowMs;
  const isTaken = isLive && isOpen(offer, world.nowMs);
  const fields = { request_uri: requestUri, client_id: clientId, tx_code };
  const answer = await post(world, '/authorize', { fields });
  const { location } = answer.headers;
  const code = location === undefined ? null : new URL(String(location)).searchParams.get('code');
  const outcome = { statusCode: code === null ? 400 : 303, body: answer.body };
  accepted(world, 'approval', { answers: [outcome], expected: isTaken && isRight ? 1 : 0 });
  if (isTaken && !isRight) countWrongTxCode(offer);
  if (isLive && (isRight || !isOpen(offer, world.nowMs))) pushed.isGone = true;
  if (code === null) return undefined;
  const given: ModelCode = {
    code,
    offer,
    verifier: pushed.verifier,
    boundTo: pushed.boundTo,
    expiresAtMs: world.nowMs + CODE_MS,
    isGone: false,
  };
  world.codes.push(given);
  return given;
}

export async function exchange(world: World, step: Of<'exchange'>): Promise<void> {
  const code = pick(world.codes, step.code);
  if (code !== undefined)
    await exchangeCode(world, code, {
      wallet: world.walletOf({ wallet: step.wallet, isHonest: false }),
      how: step.how,
    });
}

interface Exchange {
  readonly wallet: SimulatedWallet;
  readonly how: Of<'exchange'>['how'];
}

/** A code serves once, and is used up by a request with another verifier or of another key too. */
async function exchangeCode(world: World, code: ModelCode, { wallet, how }: Exchange): Promise<void> {
  const fields = {
    grant_type: 'authorization_code',
    code: code.code,
    code_verifier: how === 'verifier' ? 'a'.repeat(43) : code.verifier,
    redirect_uri: redirectUri,
  };
  const isLive = !code.isGone && code.expiresAtMs > world.nowMs && isOpen(code.offer, world.nowMs);
  const answers = await atOnce(how === 'thrice' ? 3 : 1, () => tokens(world, wallet, fields));
  const isHolder = code.boundTo === undefined || code.boundTo === wallet;
  const expected = isLive && isHolder && how !== 'verifier' ? 1 : 0;
  const good = accepted(world, `exchange ${how}`, { answers, expected });
  code.isGone = true;
  for (const answer of good) {
    code.offer.status = 'Exchanged';
    keepTokens(world, answer.json(), { offer: code.offer, wallet });
  }
}

async function tokens(world: World, wallet: SimulatedWallet, fields: Readonly<Record<string, string>>) {
  const dpop = await dpopOf(world, wallet, '/token');
  return post(world, '/token', { fields, headers: { ...(await attested(world, wallet)), dpop } });
}

const dpopOf = async ({ wallet: client }: World, { dpopKey }: SimulatedWallet, path: string) =>
  client.dpop(dpopKey, { path, nonce: await client.dpopNonce() });

function keepTokens(
  world: World,
  given: { readonly access_token: string; readonly refresh_token: string },
  { offer, wallet }: { readonly offer: ModelOffer; readonly wallet: SimulatedWallet },
): void {
  world.tokens.push(tokenOf(world, given.access_token, { offer, wallet, isBound: true }));
  world.refreshes.push({
    text: given.refresh_token,
    offer,
    wallet,
    expiresAtMs: world.nowMs + REFRESH_MS,
    isUsed: false,
  });
}

/** A refresh token serves once; a second use ends all tokens of its offer, also those that the first use gave. */
export async function refresh(world: World, step: Of<'refresh'>): Promise<void> {
  const found = pick(world.refreshes, step.refresh);
  if (found === undefined) return;
  const { offer } = found;
  const wallet = world.walletOf(step, found.wallet);
  const isTwice = step.how === 'twice';
  const isHolder = found.wallet === wallet;
  const isFresh = found.expiresAtMs > world.nowMs && !found.isUsed;
  const fields = { grant_type: 'refresh_token', refresh_token: found.text };
  const answers = await atOnce(isTwice ? 2 : 1, () => tokens(world, wallet, fields));
  const good = accepted(world, 'refresh', { answers, expected: isFresh && isHolder ? 1 : 0 });
  for (const answer of good) {
    found.isUsed = true;
    keepTokens(world, answer.json(), { offer, wallet });
  }
  if (found.expiresAtMs > world.nowMs && (!isFresh || (isTwice && isHolder))) endTokens(world, offer);
}

/** Ends all tokens of an offer. */
export function endTokens({ tokens, refreshes }: World, offer: ModelOffer): void {
  for (const token of tokens) token.isEnded ||= token.offer === offer;
  for (const refresh of refreshes) refresh.isUsed ||= refresh.offer === offer;
}
