import { deepEqual } from 'node:assert/strict';
import { expiry } from '../../upkeep.ts';
import { approve, approvedToken, exchange, refresh } from './approval.ts';
import { credential, nonce, status } from './issuance.ts';
import { cancel, offer, token } from './offers.ts';
import { assertResults, object, present, request, result } from './presentation.ts';
import type { Step } from './steps.ts';
import { type Stage, World } from './world.ts';

/**
 * Takes the steps one after the other, and compares each answer with the model; then compares what is stored.
 * @throws AssertionError where the service and the model differ
 */
export async function simulate(stage: Stage, steps: readonly Step[]): Promise<void> {
  const world = new World(stage);
  for (const step of steps) await take(world, step);
  await assertResults(world);
  await assertStored(world);
}

async function take(world: World, step: Step): Promise<unknown> {
  const { isHighAssurance, fixture } = world.stage;
  switch (step.act) {
    case 'offer':
      return offer(world, step);
    case 'cancel':
      return cancel(world, step);
    case 'token':
      return isHighAssurance ? approvedToken(world, step) : token(world, step);
    case 'approve':
      return approve(world, step);
    case 'exchange':
      return exchange(world, step);
    case 'refresh':
      return refresh(world, step);
    case 'nonce':
      return nonce(world);
    case 'credential':
      return credential(world, step);
    case 'clock':
      return fixture.clock.advance(step.seconds * 1000);
    case 'upkeep':
      return expiry(fixture).run(new AbortController().signal);
    case 'status':
      return status(world, step);
    case 'request':
      return request(world, step);
    case 'object':
      return object(world, step);
    case 'present':
      return present(world, step);
    case 'result':
      return result(world, step);
  }
}

/** The credentials of each offer, and their statuses, are those of the model: no refusal left one behind. */
async function assertStored({ stage, offers, credentials }: World): Promise<void> {
  if (offers.length === 0) return;
  const rows = await stage.fixture.db.read
    .selectFrom('credentials')
    .select(['id', 'status'])
    .where(
      'offer_id',
      'in',
      offers.map(({ id }) => id),
    )
    .execute();
  const sorted = (all: readonly { readonly id: string; readonly status: string }[]) =>
    all.map(({ id, status }) => `${id} ${status}`).sort();
  deepEqual(sorted(rows), sorted(credentials), 'the stored credentials are those that were sent');
  await assertAllocated(stage);
}

/** Every status list counts the credentials that have a place in it. */
async function assertAllocated({ fixture }: Stage): Promise<void> {
  const lists = await fixture.db.read
    .selectFrom('status_lists')
    .leftJoin('credentials', 'list_id', 'status_lists.id')
    .select((column) => ['allocated', column.fn.count('credentials.id').as('places')])
    .groupBy(['status_lists.id', 'allocated'])
    .execute();
  for (const { allocated, places } of lists) deepEqual(allocated, Number(places), 'places of a list');
}
