import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { encryptFile } from '../harness/client-file.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { application, createParties, type Parties, sitePermit, workflows } from '../harness/workflow.ts';
import { compareSignals, type Followed, followParties, hearAgain, stopFollowing } from './following.ts';
import { duration, type Steps } from './steps.ts';

const run = promisify(execFile);
const program = fileURLToPath(new URL('../../components/cli/main.ts', import.meta.url));
const blueprintId = 'site-permit-approval';
const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };

const plansBytes = 1024 * 1024;

const published = z.looseObject({ publicationTxId: z.string(), overridden: z.boolean() });
const rehearsal = z.looseObject({
  rehearsalId: z.string(),
  status: z.string(),
  currentActingRole: z.string().nullable(),
});

interface Permit extends Parties {
  readonly registerId: string;
}

/** A permit that three organisations decide over an encrypted register. */
export async function workflow(
  steps: Steps,
  system: LocalSystem,
  { token, dataDir }: { readonly token: string; readonly dataDir: string },
): Promise<LocalSystem> {
  const api = createApi(system.state.gatewayUrl);
  const parties = await gatherParties(steps, api, token);
  const permit = await publish(steps, api, parties);
  const { applicant, officer, inspector, registerId } = permit;
  const followed = await followParties(steps, api, {
    parties: { builder: applicant, 'planning office': officer, 'safety board': inspector },
    registerId,
  });
  try {
    const instanceId = await decide(steps, api, permit);
    await compareSignals(steps, followed);
    await makeRowsAgain(steps, api, { permit, instanceId, token });
    await readOffline(steps, api, { permit, instanceId, dataDir });
    return await killWhileItRuns(steps, system, { permit, dataDir, followed });
  } finally {
    await stopFollowing(followed);
  }
}

async function gatherParties(steps: Steps, api: Api, root: string): Promise<Parties> {
  return steps.run('create four people of four organisations, each with a wallet', async () => [
    'a builder, the planning office, the safety board, a newspaper',
    await createParties(api, root),
  ]);
}

async function publish(steps: Steps, api: Api, parties: Parties): Promise<Permit> {
  const { officer, inspector } = parties;
  const { token } = officer;
  const definition = sitePermit({
    'planning-office': officer.wallet.walletAddress,
    'safety-board': inspector.wallet.walletAddress,
  });
  const registerId = await steps.run('make a register whose payloads are encrypted', async () => {
    const id = await createRegister(api, token, { title: 'Permits', devMode: false }, officer.wallet);
    await waitOnline(api, token, id);
    return [`register ${id}`, id];
  });
  await steps.run('have a spoilt definition judged', async () => {
    await api.expect(201, 'POST', '/api/blueprints', { token, json: definition });
    const spoilt = structuredClone(definition) as {
      actions: { sender: string; routes: { nextActionIds: number[] }[] }[];
    };
    const [first] = spoilt.actions;
    if (first?.routes[0] === undefined) throw new Error('the definition has no route');
    first.sender = 'mayor';
    first.routes[0].nextActionIds = [9];
    const path = `/api/blueprints/${blueprintId}/validate`;
    const { body } = await api.expect(200, 'POST', path, { token, json: spoilt });
    const finding = z.object({ code: z.string(), location: z.string() });
    const { validationResults } = z.object({ validationResults: z.array(finding) }).parse(body);
    const named = validationResults.map(({ code, location }) => `${code} at ${location}`);
    if (named.length < 2) throw new Error(`found only ${named.join()}`);
    return [named.join(', '), undefined];
  });
  await steps.run('publish it without a rehearsal', async () => {
    const path = `/api/blueprints/${blueprintId}/publish`;
    const { body } = await api.expect(409, 'POST', path, { token, json: { registerId } });
    const { code } = z.looseObject({ code: z.string() }).parse(body);
    if (code !== 'REHEARSAL_REQUIRED') throw new Error(`refused with ${code}`);
    return [code, undefined];
  });
  await rehearse(steps, api, officer);
  await steps.run('publish it now', async () => {
    const path = `/api/blueprints/${blueprintId}/publish`;
    const { body } = await api.expect(200, 'POST', path, { token, json: { registerId } });
    const { publicationTxId, overridden } = published.parse(body);
    if (overridden) throw new Error('published by an override');
    return [`publication ${publicationTxId.slice(0, 16)}…`, undefined];
  });
  return { ...parties, registerId };
}

/** Walks the definition through all roles in the sandbox of the organisation. */
async function rehearse(steps: Steps, api: Api, { token }: Person): Promise<void> {
  await steps.run('rehearse all roles in the sandbox', async () => {
    const path = `/api/blueprints/${blueprintId}/rehearsals`;
    const begun = await api.expect(201, 'POST', path, { token, json: { mode: 'full' } });
    const { rehearsalId } = rehearsal.parse(begun.body);
    const walk: readonly (readonly [number, object])[] = [
      [0, application],
      [1, { safetyScore: 80 }],
      [2, decision],
      [3, { collected: true }],
    ];
    const roles: (string | null)[] = [rehearsal.parse(begun.body).currentActingRole];
    let status = '';
    for (const [actionId, payload] of walk) {
      const json = { actionId, payload };
      const { body } = await api.expect(200, 'POST', `${path}/${rehearsalId}/steps`, { token, json });
      const now = rehearsal.parse(body);
      status = now.status;
      if (status === 'InProgress') roles.push(now.currentActingRole);
    }
    if (status !== 'Passed') throw new Error(`the rehearsal is ${status}`);
    return [`${roles.join(', ')}: ${status}`, undefined];
  });
}

/** Uploads the plans of the site, encrypted here: what the application refers to. */
async function attachPlans(steps: Steps, api: Api, { applicant, registerId }: Permit, plans: Buffer) {
  return steps.run('upload the plans in two encrypted chunks', async () => {
    const { bodies, reference } = encryptFile(plans, 2, {
      registerId,
      senderWallet: applicant.wallet.walletAddress,
      fileName: 'plans.pdf',
      contentType: 'application/pdf',
    });
    const chunkTransactionIds: string[] = [];
    for (const json of bodies) {
      const { body } = await api.expect(201, 'POST', '/api/file-chunks', { token: applicant.token, json });
      chunkTransactionIds.push(
        z.looseObject({ chunkTransactionId: z.string() }).parse(body).chunkTransactionId,
      );
    }
    return [`${plans.length} bytes`, { ...reference, chunkTransactionIds }] as const;
  });
}

/** Downloads the plans as a party that they are disclosed to, and tries it as another party. */
async function downloadPlans(
  steps: Steps,
  api: Api,
  { officer, inspector, registerId }: Permit,
  { txId, plans, fileId }: { readonly txId: string; readonly plans: Buffer; readonly fileId: string },
): Promise<void> {
  await steps.run('download them as the planning office, and as the safety board', async () => {
    const pathFor = ({ wallet }: Person) =>
      `/api/files/${wallet.walletAddress}/${registerId}/${txId}/${fileId}`;
    const { bytes } = await api.expect(200, 'GET', pathFor(officer), { token: officer.token });
    if (!plans.equals(bytes)) throw new Error('the bytes are not those of the plans');
    const refused = await api.expect([403, 404], 'GET', pathFor(inspector), { token: inspector.token });
    const { code } = z.looseObject({ code: z.string() }).parse(refused.body);
    return [`the same ${bytes.length} bytes; ${code}`, undefined];
  });
}

async function decide(steps: Steps, api: Api, permit: Permit): Promise<string> {
  const { applicant, officer, inspector, stranger, registerId } = permit;
  const flow = workflows(api);
  const instanceId = await steps.run('start an instance', async () => {
    const id = await flow.start(applicant, blueprintId, registerId);
    return [id, id];
  });
  const step = (actionId: number, payload: object) => ({
    instanceId,
    registerId,
    blueprintId,
    actionId,
    payload,
  });
  const content = randomBytes(plansBytes);
  const plans = await attachPlans(steps, api, permit, content);
  const txId = await steps.run('apply for a permit', async () => {
    const done = await flow.complete(applicant, step(0, { ...application, plans }));
    if (done.transactionHash === null) throw new Error(done.error?.message ?? 'no transaction');
    await flow.reach(applicant, instanceId, done.transactionHash);
    return [`${done.status}, transaction ${done.transactionHash.slice(0, 16)}…`, done.transactionHash];
  });
  const [fileId = ''] = plans.chunkTransactionIds;
  await downloadPlans(steps, api, permit, { txId, plans: content, fileId });
  await steps.run('read it as each party', async () => {
    const fields = async (person: Person) =>
      Object.keys((await flow.disclosed(person, instanceId)).disclosedFields).length;
    const denied = await api.send('GET', `/api/workflows/${instanceId}/disclosures`, {
      token: stranger.token,
    });
    const told = JSON.stringify(denied.body).includes(application.siteReference);
    if (told) throw new Error('the stranger reads the application');
    return [
      `safety board ${await fields(inspector)} fields, planning office ${await fields(officer)}, newspaper none`,
      undefined,
    ];
  });
  await steps.run('the safety board sends it back, the builder corrects it', async () => {
    const path = `/api/instances/${instanceId}/actions/1/reject`;
    await api.expect(200, 'POST', path, { token: inspector.token, json: { reason: 'The area is wrong.' } });
    await flow.complete(applicant, step(0, { ...application, floorAreaM2: 700 }));
    const { currentActionIds } = await flow.read(applicant, instanceId);
    return [`current action ${currentActionIds.join()}`, undefined];
  });
  await steps.run('review, decide, collect', async () => {
    await flow.complete(inspector, step(1, { safetyScore: 80 }));
    await flow.complete(officer, step(2, decision));
    const last = await flow.complete(applicant, step(3, { collected: true }));
    const { state, completedActionCount } = await flow.reach(
      applicant,
      instanceId,
      last.transactionHash ?? '',
    );
    if (state !== 'Completed') throw new Error(`the instance is ${state}`);
    return [`${state} after ${completedActionCount} actions`, undefined];
  });
  return instanceId;
}

/** Deletes what the service made of the sealed steps, and compares what it makes of them again. */
async function makeRowsAgain(
  steps: Steps,
  api: Api,
  {
    permit,
    instanceId,
    token,
  }: { readonly permit: Permit; readonly instanceId: string; readonly token: string },
): Promise<void> {
  await steps.run('delete the rows of its instances, and make them again from the ledger', async () => {
    const path = `/api/instances/${instanceId}`;
    const ask = () => api.expect([200, 503], 'GET', path, { token: permit.applicant.token });
    const before = await ask();
    const rebuild = `/api/admin/workflows/${permit.registerId}/projection/rebuild`;
    await api.expect(202, 'POST', rebuild, { token });
    const after = await until('the instance is read again', 20_000, async () => {
      const answer = await ask();
      return answer.status === 200 ? answer : undefined;
    });
    if (!Buffer.from(before.bytes).equals(after.bytes))
      throw new Error('the instance reads otherwise than before');
    return ['the instance reads as before', undefined];
  });
}

async function readOffline(
  steps: Steps,
  api: Api,
  {
    permit,
    instanceId,
    dataDir,
  }: { readonly permit: Permit; readonly instanceId: string; readonly dataDir: string },
): Promise<void> {
  const file = join(dataDir, 'permits.jsonl');
  const bytes = await steps.run('export the register', async () => {
    const path = `/api/registers/${permit.registerId}/export`;
    const answer = await api.expect(200, 'GET', path, { token: permit.officer.token });
    writeFileSync(file, answer.bytes);
    return [`${answer.bytes.length} bytes`, answer.bytes];
  });
  await steps.run('chancery instance: verify each step offline', async () => {
    const { stdout } = await run(process.execPath, [program, 'instance', file, instanceId]);
    const path = stdout
      .trim()
      .split('\n')
      .map((line) => `      ${line}`);
    return [`\n${path.join('\n')}\n     `, undefined];
  });
  await steps.run('flip one byte of the export', async () => {
    const copy = Buffer.from(bytes);
    const at = Math.floor(copy.length / 2);
    copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
    writeFileSync(`${file}.flipped`, copy);
    const refused = await run(process.execPath, [program, 'instance', `${file}.flipped`, instanceId]).then(
      () => undefined,
      (error: { stderr?: string }) => error.stderr?.trim().split('\n')[0],
    );
    if (refused === undefined) throw new Error('the changed export verifies');
    return [refused, undefined];
  });
}

async function killWhileItRuns(
  steps: Steps,
  system: LocalSystem,
  {
    permit,
    dataDir,
    followed,
  }: { readonly permit: Permit; readonly dataDir: string; readonly followed: readonly Followed[] },
): Promise<LocalSystem> {
  const { applicant, registerId } = permit;
  const before = workflows(createApi(system.state.gatewayUrl));
  const instanceId = await before.start(applicant, blueprintId, registerId);
  const operationId = await steps.run('apply once more, and kill -9 the whole system meanwhile', async () => {
    const payload = { ...application, floorAreaM2: 40 };
    const answer = await before.take(applicant, {
      instanceId,
      registerId,
      blueprintId,
      actionId: 0,
      payload,
    });
    await system.kill();
    const { operationId: id } = z.looseObject({ operationId: z.string() }).parse(answer.body);
    return [`operation ${id} was accepted`, id];
  });
  const again = await steps.run('start it again', async () => {
    const { port } = new URL(system.state.gatewayUrl);
    const restarted = await startSystem({ dataDir, args: ['--port', port] });
    return [`ready after ${duration(restarted.startedInMs)}`, restarted];
  });
  try {
    await steps.run('find the operation done, once', async () => {
      const flow = workflows(createApi(again.state.gatewayUrl));
      const done = await until('the operation is over', 30_000, async () => {
        const now = await flow.operationOf(applicant, operationId);
        return now.status === 'Complete' || now.status === 'Failed' ? now : undefined;
      });
      const { currentActionIds, version } = await flow.reach(
        applicant,
        instanceId,
        done.transactionHash ?? '',
      );
      if (version !== 1) throw new Error(`the instance has ${String(version)} steps`);
      return [`${done.status}; one step, current action ${currentActionIds.join()}`, undefined];
    });
    await hearAgain(steps, followed, { party: 'planning office', instanceId, actionId: 2 });
    return again;
  } catch (error) {
    // The caller knows the system that was killed alone.
    await again.kill();
    throw error;
  }
}
