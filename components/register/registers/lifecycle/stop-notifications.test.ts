import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { createStopNotifications } from './stop-notifications.ts';

const registerId = '0'.repeat(32);
const member = (validatorId: string) => ({ validatorId, endpoint: `${validatorId}:5000` });
const outage = new AppError('timeout', 'TIMEOUT', 'did not answer');

/** Validators that fail with these errors in turn, and then stop the register. */
function setup(errors: Readonly<Record<string, readonly Error[]>>) {
  const asked: string[] = [];
  const stopNotifications = createStopNotifications({
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
  return { stopNotifications, asked };
}

describe('stop notifications for a deleted register', () => {
  it('are repeated until every validator has answered', async () => {
    const { stopNotifications, asked } = setup({
      b: [outage, new AppError('unavailable', 'GONE', 'gone'), outage],
    });
    stopNotifications.notify(registerId, [member('a'), member('b'), { validatorId: 'c', endpoint: '' }]);
    await waitFor(() => asked.length === 5, { what: 'the fourth attempt' });
    await stopNotifications.stop();
    expect(asked.toSorted()).toEqual(['a stop 32', 'b stop 32', 'b stop 32', 'b stop 32', 'b stop 32']);
  });

  it('are not repeated when a validator does not know the register', async () => {
    const { stopNotifications, asked } = setup({
      a: [new AppError('not_found', 'REGISTER_NOT_FOUND', 'unknown')],
    });
    stopNotifications.notify(registerId, [member('a'), member('b')]);
    await waitFor(() => asked.length === 2);
    await stopNotifications.stop();
    expect(asked).toHaveLength(2);
  });

  it('are no longer sent once the service stops', async () => {
    const { stopNotifications, asked } = setup({ a: Array<Error>(1_000).fill(outage) });
    stopNotifications.notify(registerId, [member('a')]);
    await waitFor(() => asked.length > 2);
    await stopNotifications.stop();
    const count = asked.length;
    stopNotifications.notify(registerId, [member('b')]);
    expect(asked).toHaveLength(count);
  });
});
