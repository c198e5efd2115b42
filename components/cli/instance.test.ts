import { describe, expect, it } from 'vitest';
import { publicationTxId } from '#core/blueprint/hashes.ts';
import { advance, type Step } from '#core/blueprint/steps/advance.ts';
import { encodeRouting, type Routing } from '#core/blueprint/steps/routing.ts';
import { compileWorkflow } from '#core/blueprint/steps/workflow.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import { at, owner, type Person, person, registerId } from '#core/ledger/governance/testing/scene.ts';
import {
  type SealedBytes,
  SealedRegister,
  sealPublication,
  sealTransaction,
} from '#core/ledger/verification/testing/sealed-register.ts';
import { command } from './testing/command.ts';

const id = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const applicant = person(21);
const board = person(22);

const permit = {
  id: 'site-permit',
  title: 'Site permit',
  description: 'A permit for a site.',
  participants: [
    { id: 'applicant', name: 'Applicant' },
    { id: 'board', name: 'Board', walletAddress: board.address },
  ],
  actions: [
    {
      id: 0,
      title: 'Apply',
      sender: 'applicant',
      isStartingAction: true,
      routes: [{ id: 'on', nextActionIds: [1, 2], branchDeadline: 'P1D' }],
    },
    {
      id: 1,
      title: 'Look \u202e at it',
      sender: 'board',
      rejectionConfig: { targetActionId: 0 },
      routes: [{ id: 'fine', nextActionIds: [2], 'x-decision-notice': { reasons: { R1: 'Safe' } } }],
    },
    { id: 2, title: 'Pay', sender: 'applicant', requiredPriorActions: [1] },
  ],
};
const pin = publicationTxId(registerId, permit.id, permit);

/** A register with the definition, and one docket for each step. */
class WorkflowRegister extends SealedRegister {
  before: Routing | undefined;
  last = pin;
  readonly definition: JsonObject;

  constructor(definition: JsonObject & { readonly id: string } = permit) {
    super(4);
    this.definition = definition;
    this.seal(sealPublication(owner, definition, at(60)));
  }

  get time(): string {
    return at(this.dockets.length * 60 - 1);
  }

  make(
    sender: Person,
    actionId: number,
    more: Partial<Step> = {},
    spoil: (routing: Routing) => Routing = (r) => r,
  ): SealedBytes {
    const workflow = compileWorkflow(this.definition) ?? expect.unreachable();
    const createdAt = this.time;
    const step = { instanceId: id, pin, actionId, sender: sender.address, createdAt, ...more };
    const advanced = advance(workflow, this.before, step);
    if ('violations' in advanced) expect.unreachable(JSON.stringify(advanced.violations));
    else this.before = advanced.routing;
    const routing = spoil(this.before ?? expect.unreachable());
    return sealTransaction(
      sender,
      { n: actionId },
      {
        type: step.isRejection ? 'Rejection' : 'Action',
        blueprintId: permit.id,
        actionId: String(actionId),
        previousTransactionId: this.last,
        createdAt,
        metadata: { instanceId: step.instanceId, routing: encodeRouting(routing) },
      },
    );
  }

  take(...args: Parameters<WorkflowRegister['make']>): this {
    const made = this.make(...args);
    this.seal(made);
    this.last = made.txId;
    return this;
  }

  get file(): string {
    return this.lines().join('');
  }
}

function register(): WorkflowRegister {
  return new WorkflowRegister().take(applicant, 0, { routeId: 'on' });
}

const show = (file: string | Error, ...more: string[]) => command(file, ['instance', 'FILE', id, ...more]);

describe('chancery instance', () => {
  it('prints the path of an instance to its end', async () => {
    const whole = register()
      .take(board, 1, { isRejection: true })
      .take(applicant, 0, { routeId: 'on' })
      .take(board, 1, { routeId: 'fine', reasonCode: 'R1' })
      .take(applicant, 2);
    const { code, out, err } = await show(whole.file);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Everything verifies.');
    expect(out).toContain('Each step follows from its definition.');
    expect(out).toContain('site-permit "Site permit"');
    expect(out).toContain(`${pin}, docket 1\n`);
    expect(out).toContain('state         Completed; 4 actions, 1 rejections\n');
    const path = out.slice(out.indexOf('    0  '));
    expect(path.split('\n').filter((line) => /^ {2}\s*\d/.test(line))).toEqual([
      '    0  Apply (action 0), route on',
      '    1  (not readable) (action 1), rejected',
      '    2  Apply (action 0), route on',
      '    3  (not readable) (action 1), route fine, reason R1',
      '    4  Pay (action 2)',
    ]);
    expect(path).toContain(`by board ${board.address}`);
    expect(path).toContain(
      `docket 2, sealed ${at(120)}, transaction ${whole.dockets[2]?.transactions[0]?.txId}`,
    );
    expect(path).toContain('then (not readable) (action 1), branch 0.on.0; Pay (action 2)');
  });

  it('prints what an open instance waits for, and that it is past its deadline', async () => {
    const open = register();
    const { out } = await show(open.file);
    expect(out).toContain('state         Active; 1 actions, 0 rejections\n');
    expect(out).toContain(
      `current       (not readable) (action 1), branch 0.on.0, until ${at(119 + 86_400)}\n`,
    );
    expect(out).toContain('current       Pay (action 2)\n');
  });

  it('exits with 1 at the first step that does not follow, and names it', async () => {
    const spoilt: [string, (r: WorkflowRegister) => unknown, string][] = [
      [
        'a state',
        (r) =>
          r.take(board, 1, { routeId: 'fine' }, (routing) => ({ ...routing, current: [{ actionId: 0 }] })),
        'VAL_BP_003',
      ],
      [
        'a number',
        (r) => r.take(board, 1, { routeId: 'fine' }, (routing) => ({ ...routing, seq: 2 })),
        'VAL_BP_003',
      ],
      [
        'a pin',
        (r) =>
          r.take(board, 1, { routeId: 'fine' }, (routing) => ({
            ...routing,
            blueprintDefinitionTxId: 'ab'.repeat(32),
          })),
        'VAL_BP_VERSION_001',
      ],
      [
        'a free transaction',
        (r) =>
          r.seal(
            sealTransaction(
              owner,
              { n: 1 },
              { type: 'Action', createdAt: at(170), previousTransactionId: r.last },
            ),
          ),
        'VAL_BP_003',
      ],
      [
        'a fork',
        (r) => {
          const second = new WorkflowRegister();
          second.before = r.before;
          second.last = r.last;
          const other = second.make(board, 1, { routeId: 'fine', createdAt: at(118) });
          r.take(board, 1, { routeId: 'fine' });
          r.seal(other);
        },
        'VAL_CHAIN_FORK',
      ],
      [
        'a step without predecessor',
        (r) => {
          r.last = 'ef'.repeat(32);
          r.take(board, 1, { routeId: 'fine' });
        },
        'VAL_BP_003',
      ],
    ];
    for (const [name, spoil, expected] of spoilt) {
      const r = register();
      spoil(r);
      r.seal(sealTransaction(owner, { n: 9 }, { type: 'Action', createdAt: at(400) }));
      const { code, out, err } = await show(r.file);
      expect([code, out], name).toEqual([1, '']);
      const wrong = r.dockets.at(-2)?.transactions[0]?.txId;
      expect(err, name).toMatch(
        new RegExp(`^Does not verify: line \\d+, docket \\d+, transaction ${wrong}: ${expected}: `),
      );
      expect((await command(r.file)).code, name).toBe(0);
    }
  });

  it('refuses a step in the docket that publishes its definition', async () => {
    const r = new WorkflowRegister();
    const step = r.make(applicant, 0, { routeId: 'on', createdAt: at(59) });
    const early = new SealedRegister(4);
    early.seal(sealPublication(owner, permit, at(60)), step);
    expect((await show(early.lines().join(''))).err).toContain('VAL_BP_VERSION_001');
  });

  it('counts the first of two starts', async () => {
    const r = register();
    const first = r.last;
    const second = new WorkflowRegister();
    const other = second.make(board, 0, { routeId: 'on', createdAt: at(170) });
    r.seal(other);
    second.last = other.txId;
    r.seal(second.make(board, 1, { routeId: 'fine', createdAt: at(230) }));
    const { code, out } = await show(r.file);
    expect(code).toBe(0);
    expect(out).toContain('not counted   2 steps behind later starts of the same id');
    expect(out).toContain(first);
    expect(out).not.toContain(other.txId);
  });

  it('exits with 1 for a register that does not verify, as verify does', async () => {
    const { file } = register();
    const flipped = file.replace('"payload":"eyJuIjow', '"payload":"eyJuIjox');
    expect(flipped).not.toBe(file);
    expect(await show(flipped)).toEqual(await command(flipped));
    expect((await show(file, '--genesis', 'f'.repeat(64))).err).toContain('GENESIS_MISMATCH');
    expect((await show(file.slice(0, -1))).err).toContain('LINE_UNFINISHED');
  });

  it('exits with 2 without such an instance, and for wrong commands', async () => {
    const { file } = register();
    const unknown = await command(file, ['instance', 'FILE', id.replace('7', '8')]);
    expect(unknown).toMatchObject({ code: 2, out: '', err: expect.stringContaining('has no instance') });
    for (const args of [
      ['instance'],
      ['instance', 'FILE'],
      ['instance', 'FILE', 'x'],
      ['instance', 'FILE', id, 'y'],
      ['instance', '-', id],
    ]) {
      expect((await command(file, args)).code, args.join(' ')).toBe(2);
    }
    expect((await show('hello\n')).code).toBe(2);
  });
});
