import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createOutbound } from '#kit/outbound/outbound.ts';
import type { TenantConfig } from '../../config.ts';
import { breachedByRange } from './breached.ts';
import { createPasswordPolicy, type PasswordPolicy } from './policy.ts';

/** The policy of the settings; the service of breached passwords is asked where they name one. */
export function passwordPolicyOf(
  config: TenantConfig,
  { log, telemetry }: Pick<Runtime, 'log' | 'telemetry'>,
): PasswordPolicy {
  const url = config.CHANCERY_PASSWORD_BREACH_API;
  if (url === undefined) return createPasswordPolicy(config.CHANCERY_PASSWORD_MIN_LENGTH);
  const failures = telemetry.counter(
    'breached_password_failures_total',
    'Passwords accepted unasked because the service of breached passwords did not answer',
  );
  const breached = breachedByRange({
    url,
    outbound: createOutbound({ allowed: config.CHANCERY_OUTBOUND_ALLOWED }),
    onFailed: (error) => {
      failures.inc();
      log.warn({ err: error }, 'the service of breached passwords did not answer; the password was accepted');
    },
  });
  return createPasswordPolicy(config.CHANCERY_PASSWORD_MIN_LENGTH, breached);
}
