import { deepEqual } from 'node:assert/strict';
import { z } from 'zod';
import { issuerUrl } from '../fixture.ts';
import { decodeSdJwt, type WalletKey } from '../wallet.ts';
import { endTokens } from './approval.ts';
import {
  MOST_CREDENTIALS,
  type ModelNonce,
  type ModelToken,
  NONCE_MS,
  type SimulatedWallet,
  STATUS_AFTER,
  takesChange,
} from './model.ts';
import type { Step } from './steps.ts';
import { accepted, atOnce, CALLERS, pick, type World } from './world.ts';

type Of<A extends Step['act']> = Extract<Step, { act: A }>;

/** A new nonce; the nonce endpoint has no condition. */
export async function nonce(world: World): Promise<ModelNonce> {
  const made: ModelNonce = { text: await world.wallet.nonce(), createdAtMs: world.nowMs, isUsed: false };
  world.nonces.push(made);
  return made;
}

/** A request for credentials, prepared. */
interface Attempt {
  readonly token: ModelToken;
  readonly wallet: SimulatedWallet;
  readonly how: Of<'credential'>['how'];
  readonly keys: readonly WalletKey[];
}

const faulty: ReadonlySet<Attempt['how']> = new Set([
  'audience',
  'foreignKey',
  'configuration',
  'sameKey',
  'bare',
  'unbound',
]);

export async function credential(world: World, step: Of<'credential'>): Promise<void> {
  const token = pick(world.tokens, step.token);
  if (token === undefined) return;
  const { how } = step;
  const wallet = world.walletOf(step, token.wallet);
  const attempt = { token, wallet, how, keys: wallet.keys.slice(0, step.count) };
  const chosen = step.nonce === undefined ? undefined : pick(world.nonces, step.nonce);
  const nonces = how === 'crowd' ? await atOnce(4, () => nonce(world)) : [chosen ?? (await nonce(world))];
  const room = Math.floor((MOST_CREDENTIALS - token.issued) / step.count);
  const live = nonces.filter(
    ({ isUsed, createdAtMs }) => !isUsed && world.nowMs - createdAtMs <= NONCE_MS,
  ).length;
  const expected = isAllowed(world, attempt) ? Math.min(room, live) : 0;
  const sent = await Promise.all(nonces.map((one) => requestWith(world, attempt, one)));
  const answers = (await Promise.all(sent.map((send) => atOnce(how === 'twice' ? 2 : 1, send)))).flat();
  const good = accepted(world, `credential ${how}`, { answers, expected });
  for (const answer of good) {
    answer.used.isUsed = true;
    token.issued += step.count;
    await keepCredentials(world, attempt, answer.json());
  }
}

/** Whether the token, the proofs and the offer allow credentials, whatever the nonce is. */
function isAllowed({ stage, credentials, nowMs }: World, { token, wallet, how, keys }: Attempt): boolean {
  const { offer } = token;
  const isLive = !token.isEnded && token.expiresAtMs > nowMs;
  const isHolder = !token.isBound || token.wallet === wallet;
  const isKeyOfOffer = offer.boundTo === undefined || keys.every((key) => key === offer.boundTo?.keys[0]);
  const isWithdrawn = credentials.some((one) => one.offer === offer && one.status !== 'Active');
  const isUnattested = how === 'unattested' && stage.isHighAssurance;
  return isLive && isHolder && isKeyOfOffer && !isWithdrawn && !isUnattested && !faulty.has(how);
}

/** A function that sends the request; its proofs are made once, so that the same request can be sent again. */
async function requestWith(world: World, attempt: Attempt, used: ModelNonce) {
  const { token, wallet, how } = attempt;
  const jwt = await proofsOf(world, attempt, used);
  const id = how === 'configuration' ? `${token.offer.configurationId}x` : token.offer.configurationId;
  const body = { credential_configuration_id: id, ...(how !== 'bare' && { proofs: { jwt } }) };
  return async () => {
    const headers = await tokenHeaders(world, { token, wallet, how });
    const answer = await world.wallet.credential(token.text, body, headers);
    return {
      statusCode: answer.statusCode,
      body: answer.body,
      json: () => issuedSchema.parse(answer.json()),
      used,
    };
  };
}

const issuedSchema = z.object({ credentials: z.array(z.object({ credential: z.string() })) });

async function proofsOf(world: World, { keys, how }: Attempt, { text }: ModelNonce): Promise<string[]> {
  const { wallet, stage } = world;
  const signers = how === 'sameKey' ? [...keys, ...keys.slice(0, 1)] : keys;
  const other = stage.wallets.find(({ dpopKey }) => !keys.includes(dpopKey))?.dpopKey;
  const isAttested = stage.isHighAssurance && how !== 'unattested';
  return Promise.all(
    signers.map(async (key) => {
      const attestation = isAttested ? await stage.attester.attestKeys([key], wallet.nowSeconds) : undefined;
      const header = {
        ...(how === 'foreignKey' && { jwk: other?.jwk }),
        ...(attestation !== undefined && { key_attestation: attestation }),
      };
      const aud = how === 'audience' ? 'https://other.test' : issuerUrl;
      return wallet.proof(key, { header, payload: { nonce: text, aud } });
    }),
  );
}

/** The token with its proof; `unbound` sends a bound token as a bearer token, and a bearer token as a bound one. */
async function tokenHeaders(
  { wallet: client }: World,
  { token, wallet, how }: Pick<Attempt, 'token' | 'wallet' | 'how'>,
): Promise<Record<string, string>> {
  const isBound = token.isBound !== (how === 'unbound');
  if (!isBound) return {};
  const nonce = await client.dpopNonce();
  const dpop = await client.dpop(wallet.dpopKey, { path: '/credential', nonce, accessToken: token.text });
  return { authorization: `DPoP ${token.text}`, dpop };
}

async function keepCredentials(
  world: World,
  { token: { offer }, keys }: Attempt,
  { credentials }: z.output<typeof issuedSchema>,
): Promise<void> {
  const read = credentials.map(({ credential: compact }) => ({ compact, ...decodeSdJwt(compact) }));
  const bound = read.map(({ payload }) => payload.cnf.jwk);
  deepEqual(
    bound,
    keys.map(({ jwk }) => jwk),
    'each credential is bound to the key that was proven',
  );
  const rows = await world.stage.fixture.db.read
    .selectFrom('credentials')
    .select(['id', 'list_index'])
    .where('offer_id', '=', offer.id)
    .execute();
  for (const [index, { compact, payload }] of read.entries()) {
    const key = keys[index];
    const row = rows.find((one) => one.list_index === payload.status.status_list.idx);
    if (key === undefined || row === undefined) throw new Error('a credential was sent that is not stored');
    world.credentials.push({ id: row.id, compact, key, offer, expiresAt: payload.exp, status: 'Active' });
  }
}

/** Services and Administrators of the issuing organisation change statuses; revocation is final and ends the tokens. */
export async function status(world: World, step: Of<'status'>): Promise<void> {
  const found = pick(world.credentials, step.credential);
  if (found === undefined) return;
  const { verb } = step;
  const authorization = CALLERS[step.caller] ?? '';
  const isAllowed = step.caller < 2;
  const answer = await world.stage.fixture.app.inject({
    method: 'POST',
    url: `/api/v1/credentials/${found.id}/${verb}`,
    headers: { authorization },
    payload: { reason: 'simulation' },
  });
  const expected = isAllowed && takesChange(found, verb) ? 1 : 0;
  const good = accepted(world, verb, { answers: [answer], expected });
  if (!isAllowed) deepEqual(answer.statusCode, 404, 'a caller learns of a credential of others');
  if (good.length === 0) return;
  found.status = STATUS_AFTER[verb];
  if (verb === 'revoke') endTokens(world, found.offer);
}
