import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { advance, type Step } from '#core/blueprint/steps/advance.ts';
import { encodeRouting, type Routing } from '#core/blueprint/steps/routing.ts';
import { compileWorkflow } from '#core/blueprint/steps/workflow.ts';
import { walletAddress } from '#core/crypto/address.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { sitePermit, startWorld, type World } from '../testing/world.ts';
import { beginRebuild } from './projection/progress/store.ts';

const base = '/api/instances';
const addressOf = (name: string) => walletAddress('ED25519', createHash('sha256').update(name).digest());
const applicant = addressOf('applicant');
const another = addressOf('another');
const office = String((sitePermit()['participants'] as { walletAddress?: string }[])[1]?.walletAddress);
const board = String((sitePermit()['participants'] as { walletAddress?: string }[])[2]?.walletAddress);

describe('instances', () => {
  let world: World;
  let pin: string;
  let routing: Routing | undefined;
  let previous: string;
  let instanceId: string;

  beforeAll(async () => {
    world = await startWorld('blueprint_instances');
    world.wallets.set('admin', [addressOf('admin')]);
    world.wallets.set('user', [applicant]);
    world.wallets.set('designer', [board]);
  });
  afterAll(() => world.stop());

  beforeEach(async () => {
    const id = createHash('sha256').update(randomUUID()).digest('hex').slice(0, 32);
    world.addRegister(id, { roster: [{ subject: `did:platform:w:${addressOf('admin')}`, role: 'Owner' }] });
    current = id;
    const body = { ...sitePermit(), id: `permit-${id.slice(0, 8)}` };
    await world.call('POST', '/api/blueprints', { body });
    const published = await world.call('POST', `/api/blueprints/${body.id}/publish`, {
      body: { registerId: id, override: { confirm: true, reason: 'test' } },
    });
    expect(published.status).toBe(200);
    pin = published.body.publicationTxId;
    routing = undefined;
    previous = pin;
  });
  let current = '';

  async function create(token = 'user', extra: object = {}) {
    const body = { blueprintId: `permit-${current.slice(0, 8)}`, registerId: current, ...extra };
    const made = await world.call('POST', `${base}/`, { token, body });
    if (made.status === 201) instanceId = made.body.instanceId;
    return made;
  }

  /** Seals the next step as the ledger would. */
  function seal(step: Omit<Step, 'instanceId' | 'pin' | 'createdAt'>, change: Partial<Routing> = {}): string {
    const register = world.registers.get(current);
    const workflow = compileWorkflow(register?.publications[0]?.definition as JsonObject);
    if (register === undefined || workflow === undefined) throw new Error('no workflow');
    world.clock.advance(1_000);
    const createdAt = formatLedgerTimestamp(BigInt(world.clock.nowMs()) * 1_000n);
    const advanced = advance(workflow, routing, { ...step, instanceId, pin, createdAt });
    if ('violations' in advanced) throw new Error(JSON.stringify(advanced.violations));
    routing = { ...advanced.routing, ...change };
    const txId = createHash('sha256').update(randomUUID()).digest('hex');
    register.steps.push({
      position: { docket: 10 + register.steps.length, index: 0 },
      sealedAt: createdAt,
      record: {
        txId,
        registerId: current,
        blueprintId: workflow.blueprintId,
        actionId: String(step.actionId),
        type: step.isRejection === true ? 'Rejection' : 'Action',
        payloadHash: txId,
        payloadSize: 2,
        previousTransactionId: previous,
        createdAt,
        senderAddress: step.sender,
        recipients: [],
        metadata: { instanceId, routing: encodeRouting(routing) },
        signatures: [],
        bound: true,
      },
    });
    previous = txId;
    return txId;
  }

  const project = () => world.projector.catchUpRegister(current);
  const read = async (token = 'user', path = '') =>
    world.call('GET', `${base}/${instanceId}${path}`, { token });
  const events = async () =>
    world.db.read
      .selectFrom('outbox' as never)
      .selectAll()
      .execute() as Promise<{ kind: string; key: string; data: Record<string, unknown> }[]>;

  it('are created once for a key, and nothing is on the ledger', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { blueprintId: `permit-${current.slice(0, 8)}`, registerId: current, metadata: { n: 1 } };
    const first = await world.call('POST', `${base}/`, { token: 'user', body, headers });
    const again = await world.call('POST', `${base}/`, { token: 'user', body, headers });
    expect([first.status, again.status, again.body.instanceId]).toEqual([201, 201, first.body.instanceId]);
    expect(first.headers.location).toBe(`${base}/${first.body.instanceId}`);
    expect(first.body).toMatchObject({
      state: 'Pending',
      stateReason: null,
      currentActionIds: [0],
      blueprintDefinitionTxId: pin,
      blueprintVersion: 1,
      firstTransactionId: null,
      participantWallets: { 'planning-office': office, 'safety-board': board },
      metadata: { n: 1 },
      version: 0,
    });
    const other = await world.call('POST', `${base}/`, {
      token: 'user',
      body: { ...body, metadata: {} },
      headers,
    });
    expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('are refused for registers, publications and wallets that do not fit', async () => {
    const code = async (extra: object) => {
      const { status, body } = await create('user', extra);
      return [status, body.code];
    };
    expect(await code({ registerId: 'f'.repeat(32) })).toEqual([404, 'REGISTER_NOT_FOUND']);
    expect(await code({ blueprintId: 'not-there' })).toEqual([409, 'NOT_PUBLISHED']);
    expect(await code({ publicationTxId: 'a'.repeat(64) })).toEqual([409, 'BLUEPRINT_NOT_AVAILABLE']);
    for (const participant of ['applicant', 'planning-office', 'nobody']) {
      const refused = await create('user', { participantWallets: { [participant]: another } });
      expect([refused.status, refused.body.code]).toEqual([400, 'INVALID_REQUEST']);
    }
    expect((await create('user', { surplus: 1 })).status).toBe(400);
  });

  it('of a register that the caller may not read are created where any wallet may start, and nowhere else', async () => {
    const blueprintId = `closed-${current.slice(0, 8)}`;
    const [starter, ...others] = sitePermit()['participants'] as object[];
    const participants = [{ ...starter, walletAddress: applicant }, ...others];
    // Another service may publish what this one refuses.
    const register = world.registers.get(current);
    const [own] = register?.publications ?? [];
    if (register === undefined || own === undefined) throw new Error('no publication');
    register.publications.push({
      ...own,
      publicationTxId: createHash('sha256').update(blueprintId).digest('hex'),
      blueprintId,
      position: { docket: 2, index: 0 },
      definition: { ...own.definition, id: blueprintId, participants } as JsonObject,
    });
    const outside = await create('stranger', { blueprintId });
    expect([outside.status, outside.body.code]).toEqual([404, 'REGISTER_NOT_FOUND']);
    expect((await create('user', { blueprintId })).status).toBe(201);
    expect((await create('stranger')).status).toBe(201);

    const visible = async (token: string, wallet: string) => {
      world.wallets.set(token, [wallet]);
      const listed = await world.call('GET', `/api/actions/${wallet}/${current}/blueprints`, { token });
      return listed.body.blueprints.map((each: { blueprintId: string }) => each.blueprintId).sort();
    };
    const open = `permit-${current.slice(0, 8)}`;
    expect(await visible('stranger', another)).toEqual([open]);
    expect(await visible('stranger', board)).toEqual([blueprintId, open]);
    expect(await visible('designer', another)).toEqual([blueprintId, open]);
    world.wallets.delete('stranger');
    world.wallets.set('designer', [board]);
  });

  it('go from the first action to the end as their sealed steps say', async () => {
    await create();
    const first = seal({ actionId: 0, routeId: 'risky', sender: applicant });
    await project();
    const begun = await read();
    expect(begun.body).toMatchObject({
      state: 'Active',
      currentActionIds: [1],
      firstTransactionId: first,
      lastTransactionId: first,
      completedActionCount: 1,
      participantWallets: { applicant, 'planning-office': office, 'safety-board': board },
      version: 1,
    });
    expect(begun.body.ledgerInstanceId).toMatch(/^[0-9a-f]{64}$/);
    expect((await read('user', '/next-actions')).body).toEqual([
      { actionId: 1, title: 'Safety review', participantId: 'safety-board', isBlockedBy: [] },
    ]);
    seal({ actionId: 1, isRejection: true, sender: board });
    await project();
    expect((await read('designer')).body).toMatchObject({ currentActionIds: [0], completedActionCount: 1 });
    seal({ actionId: 0, routeId: 'plain', sender: applicant });
    seal({ actionId: 2, routeId: 'approved', sender: office });
    const last = seal({ actionId: 3, routeId: 'done', sender: applicant });
    await project();
    const ended = await read();
    expect(ended.body).toMatchObject({
      state: 'Completed',
      currentActionIds: [],
      lastTransactionId: last,
      completedActionCount: 4,
      version: 5,
    });
    expect(ended.body.completedAt).not.toBeNull();
    const listed = await world.call('GET', `${base}?status=Completed`, { token: 'user' });
    expect(listed.body.items.map((item: { id: string }) => item.id)).toContain(instanceId);
    expect(world.ignored).toEqual([]);
  });

  it('tell each wallet of a step, and the one that acts next of its action', async () => {
    await create();
    seal({ actionId: 0, routeId: 'risky', sender: applicant });
    await project();
    const own = (await events()).filter(({ data }) => data['instanceId'] === instanceId);
    expect(own.map(({ kind, key, data }) => [kind, key, data['available']])).toEqual([
      ['StepSealed', applicant, []],
      ['StepSealed', office, []],
      ['StepSealed', board, [1]],
    ]);
  });

  it('read as before when their rows are made again, and are not announced again', async () => {
    await create();
    seal({ actionId: 0, routeId: 'risky', sender: applicant });
    await project();
    seal({ actionId: 1, routeId: 'reviewed', sender: board });
    seal({ actionId: 2, isRejection: true, sender: office });
    await project();
    const dump = async () => {
      const tables = ['instances', 'steps', 'instance_roles', 'step_cursors'] as const;
      const rows = await Promise.all(
        tables.map((table) =>
          world.db.read.selectFrom(table).selectAll().where('register_id', '=', current).execute(),
        ),
      );
      return rows.map((each) => each.map((row) => ({ ...row, rebuilds: 0 })));
    };
    const [before, announced] = [await dump(), (await events()).length];
    expect(before[1]).toHaveLength(3);
    await world.db.transact((tx) => beginRebuild(tx, current));
    const path = `/api/admin/workflows/${current}/projection`;
    const progress = await world.call('GET', path, { token: 'system' });
    expect(progress.body).toMatchObject({ registerId: current, foldedHeight: 0, isRebuilding: true });
    for (const unanswered of [`${base}/${instanceId}`, `${base}/${randomUUID()}`, base]) {
      const { status, body } = await world.call('GET', unanswered, { token: 'user' });
      expect([status, body.code]).toEqual([503, 'INSTANCES_REBUILDING']);
    }
    // a second one before the first is done
    const again = await world.call('POST', `${path}/rebuild`, { token: 'system' });
    expect(again.status).toBe(202);
    await project();
    expect(await dump()).toEqual(before);
    expect(await events()).toHaveLength(announced);
    expect((await world.call('GET', path, { token: 'system' })).body.isRebuilding).toBe(false);
    seal({ actionId: 0, routeId: 'plain', sender: applicant });
    await project();
    expect((await events()).length).toBeGreaterThan(announced);
  });

  it('are made again for system administrators alone, and of registers that exist', async () => {
    const rebuild = (registerId: string, token: string) =>
      world.call('POST', `/api/admin/workflows/${registerId}/projection/rebuild`, { token });
    expect((await rebuild(current, 'admin')).status).toBe(403);
    expect((await rebuild('f'.repeat(32), 'system')).body.code).toBe('REGISTER_NOT_FOUND');
    expect((await rebuild('../x', 'system')).status).toBe(404);
  });

  it('of a page that was read before a rebuild are not applied behind it', async () => {
    await create();
    seal({ actionId: 0, routeId: 'risky', sender: applicant });
    await project();
    seal({ actionId: 1, routeId: 'reviewed', sender: board });
    world.answers.beforeSteps = async () => {
      delete world.answers.beforeSteps;
      await world.db.transact((tx) => beginRebuild(tx, current));
    };
    await project();
    const steps = await world.db.read
      .selectFrom('steps')
      .select('seq')
      .where('register_id', '=', current)
      .orderBy('seq')
      .execute();
    expect(steps.map(({ seq }) => seq)).toEqual([0, 1]);
  });

  it('cost no commit while a register seals no step', async () => {
    await create();
    seal({ actionId: 0, routeId: 'plain', sender: applicant });
    await project();
    const cursor = () =>
      world.db.read
        .selectFrom('step_cursors')
        .select(['docket_number', 'position'])
        .where('register_id', '=', current)
        .executeTakeFirstOrThrow();
    const before = await cursor();
    const register = world.registers.get(current);
    if (register === undefined) throw new Error('no register');
    const last = register.steps.at(-1);
    if (last === undefined) throw new Error('no step');
    // A later docket holds the next step; between them there are plain ones alone.
    world.answers.height = last.position.docket + 500;
    await project();
    expect(await cursor()).toEqual(before);
    world.answers.height = last.position.docket + 1_500;
    await project();
    expect((await cursor()).docket_number).toBe(last.position.docket + 1_500);
    delete world.answers.height;
  });

  it('take the first of two starts, and nothing that does not follow', async () => {
    await create();
    seal({ actionId: 0, routeId: 'plain', sender: applicant });
    const [after, head] = [routing, previous];
    routing = undefined;
    previous = pin;
    seal({ actionId: 0, routeId: 'risky', sender: another });
    seal({ actionId: 1, routeId: 'reviewed', sender: board });
    await project();
    expect((await read()).body).toMatchObject({ currentActionIds: [2], version: 1 });
    expect(world.ignored.splice(0)).toEqual(['second_start', 'not_next']);
    [routing, previous] = [after, head];
    // A register whose validators do not know the rules could seal this.
    seal({ actionId: 2, routeId: 'approved', sender: office }, { current: [] });
    await project();
    expect(world.ignored.splice(0)).toEqual(['refused']);
    expect((await read()).body).toMatchObject({ state: 'Active', currentActionIds: [2] });
  });

  it('are read by those who take part, and by anybody while they are untouched', async () => {
    await create('admin');
    expect((await read('user')).status).toBe(200);
    seal({ actionId: 0, routeId: 'plain', sender: another });
    await project();
    const denied = await read('user');
    expect([denied.status, denied.body.code]).toEqual([403, 'INSTANCE_ACCESS_DENIED']);
    for (const path of ['/definition', '/next-actions', '/actions/0', '/diagram']) {
      expect((await read('user', path)).status).toBe(403);
    }
    expect((await read('designer')).status).toBe(200);
    // The person who created it.
    expect((await read('admin')).status).toBe(200);
    const unknown = await world.call('GET', `${base}/${randomUUID()}`, { token: 'user' });
    expect([unknown.status, unknown.body.code]).toEqual([404, 'INSTANCE_NOT_FOUND']);
    // A path that does not exist, as for every malformed id.
    expect((await world.call('GET', `${base}/x`, { token: 'user' })).status).toBe(404);
  });

  it('show the pinned definition, its actions and a picture', async () => {
    await create();
    seal({ actionId: 0, routeId: 'risky', sender: applicant });
    await project();
    expect((await read('user', '/definition')).body).toMatchObject({
      blueprintDefinitionTxId: pin,
      blueprintVersion: 1,
      isPinnedToLatest: true,
      pinState: 'pinned',
    });
    expect((await read('user', '/actions/1')).body).toMatchObject({
      actionId: 1,
      participantId: 'safety-board',
      isCurrent: true,
      isBlockedBy: [],
      rejection: { allowed: true, requireReason: true },
    });
    expect((await read('user', '/actions/9')).body.code).toBe('ACTION_NOT_FOUND');
    const picture = await read('user', '/diagram');
    expect([picture.status, picture.headers['content-type']]).toEqual([200, 'image/svg+xml; charset=utf-8']);
    expect((await read('user', '/diagram?format=mermaid')).status).toBe(200);
    expect((await read('user', '/diagram?format=png')).status).toBe(400);
  });

  it('are cancelled by their creator before the first step, and only then', async () => {
    await create();
    const cancel = (token: string) =>
      world.call('POST', `${base}/${instanceId}/cancel`, { token, body: { reason: 'mistake' } });
    expect((await cancel('stranger')).status).toBe(403);
    expect((await cancel('user')).body).toMatchObject({ state: 'Failed', stateReason: 'Cancelled' });
    expect((await cancel('user')).body.code).toBe('INSTANCE_TERMINAL');
    await create();
    seal({ actionId: 0, routeId: 'plain', sender: applicant });
    await project();
    expect((await cancel('user')).body.code).toBe('INSTANCE_STARTED');
  });
});
