import { z } from 'zod';
import { credentialIssuanceConfig, credentialRequirement } from './credentials.ts';
import { control } from './form.ts';
import { actionId, duration, logic, pointer, schema, text, word } from './values.ts';

/** ISO 8601 duration without years and months, whose length depends on the calendar. */
const exactDuration = z
  .string()
  .regex(
    /^P(?=[0-9]|T[0-9])(?:[0-9]{1,6}W)?(?:[0-9]{1,6}D)?(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}S)?)?$/,
    {
      error: 'expected an ISO 8601 duration of weeks, days, hours, minutes and seconds',
    },
  );

const decisionNotice = z.strictObject({
  adverse: z.boolean(),
  reasonCodeField: pointer.optional(),
  reasons: z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/), text(500)).optional(),
});

/** Names of the members of a route are members of `route` in members.ts, and so on. */
export const routeModel = z.strictObject({
  id: word(100),
  nextActionIds: z.array(actionId).max(8),
  condition: logic.optional(),
  isDefault: z.boolean().optional(),
  description: text(500).optional(),
  branchDeadline: exactDuration.optional(),
  outputMapping: z.record(pointer, pointer).optional(),
  'x-decision-notice': decisionNotice.optional(),
});

const disclosure = z.strictObject({
  /** Id of a participant. */
  participantAddress: word(64),
  /** JSON Pointers into the processed data; `/*` for all of it. */
  dataPointers: z.array(pointer).min(1).max(200),
});

const rejectionConfig = z.strictObject({
  targetActionId: actionId.optional(),
  targetParticipantId: word(64).optional(),
  requireReason: z.boolean().optional(),
  rejectionSchema: schema.optional(),
  isTerminal: z.boolean().optional(),
});

const notification = z.strictObject({
  title: text(100).optional(),
  body: text(300).optional(),
  urgency: z.enum(['low', 'normal', 'high']).optional(),
  dueIn: duration.optional(),
});

/** Members of an earlier dialect: accepted, never evaluated. */
export const LEGACY_ACTION_MEMBERS = [
  'participants',
  'condition',
  'requiredActionData',
  'target',
  'additionalRecipients',
  'previousTxId',
  'previousData',
  'blueprint',
  'published',
] as const;

const legacy = z.unknown().optional();

export const actionModel = z.strictObject({
  id: actionId,
  title: word(100),
  description: text(2048).optional(),
  instructions: text(5000).optional(),
  sender: word(64),
  isStartingAction: z.boolean().optional(),
  requiredPriorActions: z.array(actionId).max(200).optional(),
  dataSchemas: z.array(schema).max(8).optional(),
  calculations: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/), logic).optional(),
  disclosures: z.array(disclosure).min(1).max(64),
  routes: z.array(routeModel).max(64).optional(),
  participants: legacy,
  condition: legacy,
  requiredActionData: legacy,
  target: legacy,
  additionalRecipients: legacy,
  previousTxId: legacy,
  previousData: legacy,
  blueprint: legacy,
  published: legacy,
  credentialRequirements: z.array(credentialRequirement).max(8).optional(),
  credentialIssuanceConfig: credentialIssuanceConfig.optional(),
  rejectionConfig: rejectionConfig.optional(),
  form: control.optional(),
  notification: notification.optional(),
});

export const participantModel = z.strictObject({
  id: word(64),
  name: word(100),
  organisation: text(200).optional(),
  /** Address of the only wallet that may act; absent while anyone may take the role. */
  walletAddress: word(100).optional(),
  didUri: text(200).optional(),
  useStealthAddress: z.boolean().optional(),
  instructions: text(2000).optional(),
  verifiableCredential: z.unknown().optional(),
  additionalProperties: z.unknown().optional(),
});

const texts = z.record(z.string(), text(5000));

const instructions = z.strictObject({
  overview: text(10_000).optional(),
  actions: texts.optional(),
  participants: texts.optional(),
  translations: z.record(z.string(), z.unknown()).optional(),
  governanceRoles: z.array(z.unknown()).max(64).optional(),
});

const instanceReference = z.strictObject({
  prefix: text(12).optional(),
  fields: z.array(pointer).max(3).optional(),
  separator: text(4).optional(),
  suffixLength: z.int().min(0).max(8).optional(),
});

const presentationConfig = z.strictObject({
  validityWindowSeconds: z.int().min(60).max(3600).optional(),
  recordAbandonment: z.boolean().optional(),
  outcomeDetail: z.enum(['full', 'kind-only']).optional(),
});

const metadata = z
  .record(word(100), text(1000))
  .refine((map) => Object.keys(map).length <= 32, { error: 'expected at most 32 members' });

/** The definition of a blueprint (specification document 3, section 2). */
export const blueprintModel = z.strictObject({
  '@context': z.unknown().optional(),
  '@type': z.unknown().optional(),
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{1,63}$/, {
    error: 'expected 2 to 64 lower-case letters, digits and hyphens',
  }),
  title: z.string().min(3).max(200),
  description: z.string().min(5).max(2000),
  version: z.int().optional(),
  participants: z.array(participantModel).min(2).max(32),
  actions: z.array(actionModel).min(1).max(200),
  dataSchemas: z.array(schema).max(64).optional(),
  instructions: instructions.optional(),
  instanceReference: instanceReference.optional(),
  presentationConfig: presentationConfig.optional(),
  metadata: metadata.optional(),
  organizationId: text(100).optional(),
  createdAt: text(40).optional(),
  updatedAt: text(40).optional(),
  versionMajor: z.int().optional(),
  versionMinor: z.int().optional(),
});

export type Blueprint = z.output<typeof blueprintModel>;
export type Action = z.output<typeof actionModel>;
export type Route = z.output<typeof routeModel>;
export type Disclosure = z.output<typeof disclosure>;
export type InstanceReference = z.output<typeof instanceReference>;
