import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { createFarewells } from './farewells.ts';

const registerId = '0'.repeat(32);
const member = (validatorId: string) => ({ validatorId, endpoint: `${validatorId}:5000` });
const outage = new AppError('timeout', 'TIMEOUT', 'did not answer');

/** Validators that fail with these errors in turn, and then stop the register. */
function told(errors: Readonly<Record<string, readonly Error[]>>) {
  const asked: string[] = [];
  const farewells = createFarewells({
    validators: {
      act: async ({ validatorId }, id, act) => {
        const error = errors[validatorId]?.[asked.filter((each) => each.startsWith(validatorId)).length];
        asked.push(`${validatorId} ${act} ${id.length}`);
        if (error !== undefined) throw error;
        return { status: 'Stopped' };
      },
    },
    log: createLogger({ service: 'test', level: 'silent' }),
    retryMs: { first: 1, last: 4 },
  });
  return { farewells, asked };
}

describe('stop notifications for a deleted register', () => {
  it('are repeated until every validator has answered', async () => {
    const { farewells, asked } = told({ b: [outage, new AppError('unavailable', 'GONE', 'gone'), outage] });
    farewells.tell(registerId, [member('a'), member('b'), { validatorId: 'c', endpoint: '' }]);
    await waitFor(() => asked.length === 5, { what: 'the fourth attempt' });
    await farewells.stop();
    expect(asked.toSorted()).toEqual(['a stop 32', 'b stop 32', 'b stop 32', 'b stop 32', 'b stop 32']);
  });

  it('are not repeated when a validator does not know the register', async () => {
    const { farewells, asked } = told({ a: [new AppError('not_found', 'REGISTER_NOT_FOUND', 'unknown')] });
    farewells.tell(registerId, [member('a'), member('b')]);
    await waitFor(() => asked.length === 2);
    await farewells.stop();
    expect(asked).toHaveLength(2);
  });

  it('are no longer sent once the service stops', async () => {
    const { farewells, asked } = told({ a: Array<Error>(1_000).fill(outage) });
    farewells.tell(registerId, [member('a')]);
    await waitFor(() => asked.length > 2);
    await farewells.stop();
    const count = asked.length;
    farewells.tell(registerId, [member('b')]);
    expect(asked).toHaveLength(count);
  });
});
