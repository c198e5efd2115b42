import type { Finding } from '#core/blueprint/model/finding.ts';

/** What was found in a definition, as clients see it. */
export function presentFindings(findings: readonly Finding[]) {
  const errors = findings.filter(({ severity }) => severity === 'Error');
  return {
    isValid: errors.length === 0,
    validationResults: errors,
    warnings: findings.filter(({ severity }) => severity === 'Warning'),
  };
}
