import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { until } from '../harness/wait.ts';
import { workflows } from '../harness/workflow.ts';

const here = installation();
const blueprintId = 'two-opinions';
const deadlineMs = 8_000;

const state = z.looseObject({ branchStates: z.record(z.string(), z.string()) });
const record = z.looseObject({ previousTransactionId: z.string() });

interface Opinions {
  readonly lawyer: Person;
  readonly engineer: Person;
  readonly chair: Person;
}

/** A request that two people judge side by side before a third one decides; the urgent ones within a deadline. */
function twoOpinions(people: Opinions): Record<string, unknown> {
  const closed = (id: keyof Opinions) => ({ id, name: id, walletAddress: people[id].wallet.walletAddress });
  const schema = (name: string, type: string) => [
    { type: 'object', additionalProperties: false, required: [name], properties: { [name]: { type } } },
  ];
  const disclosed = (...ids: string[]) =>
    ids.map((participantAddress) => ({ participantAddress, dataPointers: ['/*'] }));
  const opinion = (id: number, sender: keyof Opinions) => ({
    id,
    title: `Opinion of the ${sender}`,
    sender,
    dataSchemas: schema('isFine', 'boolean'),
    disclosures: disclosed('chair'),
    routes: [{ id: 'given', nextActionIds: [3], isDefault: true }],
  });
  return {
    id: blueprintId,
    title: 'Two opinions',
    description: 'A lawyer and an engineer judge a request side by side, then the chair decides.',
    participants: [
      { id: 'requester', name: 'Requester' },
      closed('lawyer'),
      closed('engineer'),
      closed('chair'),
    ],
    actions: [
      {
        id: 0,
        title: 'Request',
        sender: 'requester',
        isStartingAction: true,
        dataSchemas: schema('isUrgent', 'boolean'),
        disclosures: disclosed('lawyer', 'engineer', 'chair'),
        routes: [
          {
            id: 'urgent',
            condition: { '==': [{ var: 'isUrgent' }, true] },
            nextActionIds: [1, 2],
            branchDeadline: `PT${deadlineMs / 1_000}S`,
          },
          { id: 'both', nextActionIds: [1, 2], isDefault: true },
        ],
      },
      opinion(1, 'lawyer'),
      opinion(2, 'engineer'),
      {
        id: 3,
        title: 'Decide',
        sender: 'chair',
        requiredPriorActions: [1, 2],
        dataSchemas: schema('isGranted', 'boolean'),
        disclosures: disclosed('requester'),
        routes: [{ id: 'decided', nextActionIds: [], isDefault: true }],
      },
    ],
  };
}

describe('parallel branches of a workflow, through the gateway', () => {
  let requester: Person;
  let people: Opinions;
  let registerId = '';
  let flow: ReturnType<typeof workflows>;

  beforeAll(async () => {
    flow = workflows(here.api);
    const organization = await createOrganization(here.api, here.token(), 'committee');
    const person = (name: string, role: 'Administrator' | 'User' = 'User') =>
      createPerson(here.api, here.token(), organization, { name, role });
    requester = await person('requester');
    people = {
      lawyer: await person('lawyer'),
      engineer: await person('engineer'),
      chair: await person('chair', 'Administrator'),
    };
    const { chair } = people;
    const spec = { title: 'Opinions', devMode: false };
    registerId = await createRegister(here.api, chair.token, spec, chair.wallet);
    await waitOnline(here.api, chair.token, registerId);
    await flow.publish(chair, twoOpinions(people), registerId);
  });

  const step = (instanceId: string, actionId: number, payload: object) => ({
    instanceId,
    registerId,
    blueprintId,
    actionId,
    payload,
  });
  const begin = async (isUrgent: boolean): Promise<string> => {
    const instanceId = await flow.start(requester, blueprintId, registerId);
    const done = await flow.complete(requester, step(instanceId, 0, { isUrgent }));
    await flow.reach(requester, instanceId, done.transactionHash ?? '');
    return instanceId;
  };
  const branchesOf = async (instanceId: string) => {
    const path = `/api/instances/${instanceId}/state`;
    const { body } = await here.api.expect(200, 'GET', path, { token: requester.token });
    return state.parse(body).branchStates;
  };
  const decide = async (instanceId: string) =>
    flow.take(people.chair, step(instanceId, 3, { isGranted: true }));
  const setSealing = (act: 'pause' | 'resume') =>
    here.api.expect(200, 'POST', `/api/admin/validation/${act}/${registerId}`, { token: here.token() });

  test('both taken at once: the later one is evaluated anew behind the first, and the join waits for both', async () => {
    const instanceId = await begin(false);
    expect((await decide(instanceId)).body).toMatchObject({ code: 'ACTION_NOT_CURRENT' });
    // Nothing is sealed until both transactions have been made behind the same step.
    await setSealing('pause');
    const parties = [
      [people.lawyer, 1],
      [people.engineer, 2],
    ] as const;
    const taken = await Promise.all(
      parties.map(([person, actionId]) => flow.take(person, step(instanceId, actionId, { isFine: true }))),
    );
    expect(taken.map(({ status }) => status)).toEqual([202, 202]);
    const operations = () =>
      Promise.all(
        parties.map(([person], index) =>
          flow.operationOf(
            person,
            z.object({ operationId: z.string() }).parse(taken[index]?.body).operationId,
          ),
        ),
      );
    await until('both are signed, and one is accepted', 20_000, async () => {
      const now = await operations();
      const accepted = now.filter(({ transactionHash }) => transactionHash !== null);
      return now.every(({ status }) => status === 'Submitting') && accepted.length > 0 ? true : undefined;
    });
    expect((await operations()).filter(({ transactionHash }) => transactionHash !== null)).toHaveLength(1);
    await setSealing('resume');
    const done = await until('both are over', 30_000, async () => {
      const now = await operations();
      return now.every(({ status }) => status === 'Complete' || status === 'Failed') ? now : undefined;
    });
    expect(done.map(({ status }) => status)).toEqual(['Complete', 'Complete']);
    const previous = await Promise.all(
      done.map(async ({ transactionHash }) => {
        const path = `/api/registers/${registerId}/transactions/${transactionHash}`;
        const { body } = await here.api.expect(200, 'GET', path, { token: people.chair.token });
        return record.parse(body).previousTransactionId;
      }),
    );
    const [first, second] = done.map(({ transactionHash }) => transactionHash ?? '');
    expect(previous.includes(first ?? '') !== previous.includes(second ?? '')).toBe(true);

    await expect
      .poll(async () => (await flow.read(requester, instanceId)).currentActionIds, { timeout: 10_000 })
      .toEqual([3]);
    expect(await branchesOf(instanceId)).toEqual({ '0.both.0': 'Completed', '0.both.1': 'Completed' });
    const read = await flow.disclosed(people.chair, instanceId);
    expect(read.disclosures.map(({ actionId }) => actionId).toSorted()).toEqual([0, 1, 2]);
    const decided = await flow.complete(people.chair, step(instanceId, 3, { isGranted: true }));
    const ended = await flow.reach(requester, instanceId, decided.transactionHash ?? '');
    expect(ended).toMatchObject({ state: 'Completed', completedActionCount: 4 });
  }, 120_000);

  test('the join is blocked while one branch is open, and passes when that one is past its deadline', async () => {
    const instanceId = await begin(true);
    const given = await flow.complete(people.lawyer, step(instanceId, 1, { isFine: true }));
    const reached = await flow.reach(requester, instanceId, given.transactionHash ?? '');
    expect(reached.currentActionIds).toEqual([2, 3]);
    const early = await decide(instanceId);
    expect([early.status, early.body]).toMatchObject([409, { code: 'ACTION_BLOCKED', waitingFor: [2] }]);
    const late = await until('the branch is past its deadline', deadlineMs + 10_000, async () => {
      const now = await flow.read(requester, instanceId);
      return now.currentActionIds.length < 2 ? now : undefined;
    });
    expect(late).toMatchObject({ state: 'Active', currentActionIds: [3], activeBranches: [] });
    expect(await branchesOf(instanceId)).toEqual({ '0.urgent.0': 'Completed', '0.urgent.1': 'TimedOut' });
    const refused = await flow.take(people.engineer, step(instanceId, 2, { isFine: false }));
    expect([refused.status, refused.body]).toMatchObject([409, { code: 'ACTION_NOT_CURRENT' }]);
    const decided = await flow.complete(people.chair, step(instanceId, 3, { isGranted: true }));
    const ended = await flow.reach(requester, instanceId, decided.transactionHash ?? '');
    expect(ended).toMatchObject({ state: 'Completed', completedActionCount: 3 });
  }, 120_000);

  test('an instance whose branches are all past their deadline has failed', async () => {
    const instanceId = await begin(true);
    const ended = await until('the instance has failed', deadlineMs + 10_000, async () => {
      const now = await flow.read(requester, instanceId);
      return now.state === 'Failed' ? now : undefined;
    });
    expect(ended).toMatchObject({ stateReason: 'TimedOut', currentActionIds: [], activeBranches: [] });
    expect(await branchesOf(instanceId)).toEqual({ '0.urgent.0': 'TimedOut', '0.urgent.1': 'TimedOut' });
    const refused = await flow.take(people.lawyer, step(instanceId, 1, { isFine: true }));
    expect([refused.status, refused.body]).toMatchObject([409, { code: 'INSTANCE_TERMINAL' }]);
  }, 60_000);
});
