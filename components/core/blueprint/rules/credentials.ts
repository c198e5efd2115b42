import type { Action } from '../model/blueprint.ts';
import { errorAt, type Finding, warningAt } from '../model/finding.ts';
import { inAction, type RuleContext } from './context.ts';

/** An absolute URI: a scheme and something behind it (RFC 3986, section 3). */
const ABSOLUTE_URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/;

/** Credentials need a service. Hashes and drafts do not depend on it. */
export function* availability({ blueprint, credentials }: RuleContext): Generator<Finding> {
  if (credentials) return;
  for (const [index, action] of blueprint.actions.entries()) {
    const message = 'No credential service is configured; leave this out or configure one';
    for (const name of ['credentialRequirements', 'credentialIssuanceConfig'] as const) {
      const value = action[name];
      if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
      yield errorAt(inAction(index, name), 'VAL_BP_CRED_UNAVAILABLE', message);
    }
  }
}

function* credentialTypes({ credentialRequirements = [] }: Action, index: number): Generator<Finding> {
  for (const [at, { type, format = 'sd-jwt-vc' }] of credentialRequirements.entries()) {
    if (format !== 'sd-jwt-vc' || ABSOLUTE_URI.test(type)) continue;
    const location = inAction(index, 'credentialRequirements', at, 'type');
    yield errorAt(location, 'VAL_BP_CRED_004', 'The type of an sd-jwt-vc is an absolute URI');
  }
}

function* terminalRejections({ actions }: RuleContext, action: Action, index: number): Generator<Finding> {
  for (const [at, { nextActionIds }] of (action.routes ?? []).entries()) {
    for (const [position, id] of nextActionIds.entries()) {
      const next = actions.get(id);
      if (next === undefined || next.rejectionConfig?.isTerminal === true) continue;
      const message = `Action ${id} follows an issuance to a wallet of the platform and needs a terminal rejection`;
      yield errorAt(inAction(index, 'routes', at, 'nextActionIds', position), 'VAL_BP_CRED_003', message);
    }
  }
}

function* issuanceConditions(
  { routes = [], credentialIssuanceConfig }: Action,
  index: number,
): Generator<Finding> {
  if (credentialIssuanceConfig?.issuanceCondition !== undefined) return;
  const location = inAction(index, 'credentialIssuanceConfig');
  const message = 'A credential is issued whatever is decided; add an issuanceCondition';
  if (routes.some((route) => route['x-decision-notice']?.adverse === true)) {
    yield errorAt(location, 'VAL_BP_CRED_005', message);
  } else if (routes.some(({ condition }) => condition !== undefined)) {
    yield warningAt(location, 'WARN_BP_CRED_005', message);
  }
}

/** Credentials are issued to participants, under types that others can know, and only when they should be. */
export function* credentialRules(context: RuleContext): Generator<Finding> {
  for (const [index, action] of context.blueprint.actions.entries()) {
    yield* credentialTypes(action, index);
    const issuance = action.credentialIssuanceConfig;
    if (issuance === undefined) continue;
    const { recipientParticipantId, vct, format = 'sd-jwt-vc', targetAudience = 'PlatformWallet' } = issuance;
    if (!context.participantIds.has(recipientParticipantId)) {
      const location = inAction(index, 'credentialIssuanceConfig', 'recipientParticipantId');
      const message = `No participant has the id ${JSON.stringify(recipientParticipantId)}`;
      yield errorAt(location, 'VAL_BP_CRED_001', message);
    }
    if (format === 'sd-jwt-vc' && (vct === undefined || !ABSOLUTE_URI.test(vct))) {
      const location = inAction(index, 'credentialIssuanceConfig', 'vct');
      yield errorAt(location, 'VAL_BP_CRED_004', 'The vct of an sd-jwt-vc is an absolute URI');
    }
    if (targetAudience === 'PlatformWallet') yield* terminalRejections(context, action, index);
    yield* issuanceConditions(action, index);
  }
}
