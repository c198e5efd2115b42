import { deepEqual } from 'node:assert/strict';
import { CLAIMS_MS, LEEWAY_SECONDS, type ModelCredential, type ModelRequest } from './model.ts';
import { vctOf } from './offers.ts';
import type { Step } from './steps.ts';
import { accepted, atOnce, CALLERS, pick, type World } from './world.ts';

type Of<A extends Step['act']> = Extract<Step, { act: A }>;

export async function request(world: World, step: Of<'request'>): Promise<void> {
  const { presenter } = world;
  const creator = CALLERS[step.caller] ?? '';
  const { expiresInSeconds } = step;
  const answer = await presenter.ask({ credentialType: vctOf(step.type), expiresInSeconds }, creator);
  accepted(world, 'request', { answers: [answer], expected: 1 });
  const { requestId: id } = answer.json();
  const expiresAtMs = world.nowMs + expiresInSeconds * 1000;
  const read = await presenter.open(id);
  world.requests.push({ id, creator, type: step.type, read, expiresAtMs, verdict: undefined });
}

const isOpen = ({ verdict, expiresAtMs }: ModelRequest, nowMs: number) =>
  verdict === undefined && expiresAtMs > nowMs;

export async function object(world: World, step: Of<'object'>): Promise<void> {
  const found = pick(world.requests, step.request);
  if (found === undefined) return;
  const url = `/api/v1/verifier/requests/${found.id}/request-object`;
  const answer = await world.stage.fixture.app.inject({ url });
  accepted(world, 'object', { answers: [answer], expected: isOpen(found, world.nowMs) ? 1 : 0 });
}

export async function present(world: World, step: Of<'present'>): Promise<void> {
  const found = pick(world.requests, step.request);
  const shown = pick(world.credentials, step.credential);
  if (found === undefined || shown === undefined) return;
  const { how } = step;
  const isMixedUp = how === 'state';
  const answers = await sendPresentation(world, step, { found, shown });
  const isTaken = isOpen(found, world.nowMs) && !isMixedUp;
  accepted(world, `present ${how}`, { answers, expected: isTaken ? 1 : 0 });
  if (!isTaken) return;
  const isGood = (how === 'own' || how === 'twice') && isPresentable(world, found, shown);
  world.reach(isGood ? 'verified' : `failed ${how} ${shown.status}`);
  found.verdict = {
    state: isGood ? 'Verified' : 'Failed',
    atMs: world.nowMs,
    claims: isGood ? { permitNumber: shown.offer.claims['permitNumber'] } : {},
  };
}

interface Pair {
  readonly found: ModelRequest;
  readonly shown: ModelCredential;
}

function isPresentable({ nowMs }: World, { type }: ModelRequest, shown: ModelCredential): boolean {
  const { expiresAt, status, offer } = shown;
  const isLive = expiresAt === undefined || nowMs / 1000 < expiresAt + LEEWAY_SECONDS;
  return offer.type === type && status === 'Active' && isLive;
}

async function sendPresentation(world: World, step: Of<'present'>, { found, shown }: Pair) {
  const { presenter } = world;
  const { how } = step;
  const { read } = found;
  if (how === 'declined')
    return [await presenter.post(found.id, { error: 'access_denied', state: read.state })];
  const made = await presentationOf(world, step, { found, shown });
  world.posted.push({ presentation: made, request: found });
  const sent = how === 'state' ? { ...read, state: otherState(world, found) } : read;
  return atOnce(how === 'twice' ? 2 : 1, () => presenter.answer(found.id, sent, { credential: [made] }));
}

/** The state of another request, where there is one. */
function otherState({ requests }: World, found: ModelRequest): string {
  return requests.find((one) => one !== found)?.read.state ?? 'other';
}

async function presentationOf(world: World, step: Of<'present'>, { found, shown }: Pair): Promise<string> {
  const { presenter, stage } = world;
  const { how } = step;
  const disclose = ['permitNumber'];
  const payload = how === 'nonce' ? { nonce: 'other' } : {};
  const thief = stage.wallets.find(({ dpopKey }) => dpopKey.alg === shown.key.alg)?.dpopKey ?? shown.key;
  const key = how === 'stolen' ? thief : shown.key;
  const replayed = world.posted.findLast((one) => one.request !== found);
  if (how === 'replayed' && replayed !== undefined) return replayed.presentation;
  const made = await presenter.present({ ...shown, credentialId: shown.id, key }, found.read, {
    disclose,
    payload,
  });
  const bound = made.slice(0, made.lastIndexOf('~') + 1);
  if (how === 'disclosure') return withOtherClaim(made);
  if (how === 'altered') return `${bound}${altered(made.slice(bound.length))}`;
  // A replay without an earlier presentation is one without a key binding.
  return how === 'unsigned' || how === 'replayed' ? bound : made;
}

/** A presentation whose disclosure has another value. */
function withOtherClaim(made: string): string {
  const [jws = '', disclosure = '', ...rest] = made.split('~');
  const [salt, name] = JSON.parse(Buffer.from(disclosure, 'base64url').toString());
  const other = Buffer.from(JSON.stringify([salt, name, 'P-X'])).toString('base64url');
  return [jws, other, ...rest].join('~');
}

/** A key binding JWT with another signature. */
function altered(jwt: string): string {
  return `${jwt.slice(0, -8)}${jwt.endsWith('AAAAAAAA') ? 'BBBBBBBB' : 'AAAAAAAA'}`;
}

/** The result is its creator's alone. */
export async function result(world: World, step: Of<'result'>): Promise<void> {
  const found = pick(world.requests, step.request);
  if (found === undefined) return;
  const reader = CALLERS[step.caller] ?? '';
  const answer = await world.presenter.result(found.id, '', reader);
  const isCreator = reader === found.creator;
  accepted(world, 'result', { answers: [answer], expected: isCreator ? 1 : 0 });
  if (!isCreator) return deepEqual(answer.statusCode, 404, 'a caller learns of a request of others');
  assertResult(world, found, answer.json());
}

function assertResult(world: World, { verdict, expiresAtMs }: ModelRequest, read: unknown): void {
  const { state, result: shown } = Object(read);
  if (verdict === undefined) {
    deepEqual([state, shown], [expiresAtMs > world.nowMs ? 'Pending' : 'Expired', null]);
    return;
  }
  deepEqual([state, shown.isValid], [verdict.state, verdict.state === 'Verified']);
  const isErased = world.nowMs - verdict.atMs >= CLAIMS_MS && shown.verifiedClaims === null;
  if (!isErased) deepEqual(shown.verifiedClaims, verdict.claims);
}

/** Every result once more, for its creator: none changes after its verdict. */
export async function assertResults(world: World): Promise<void> {
  for (const found of world.requests) {
    const answer = await world.presenter.result(found.id, '', found.creator);
    assertResult(world, found, answer.json());
  }
}
