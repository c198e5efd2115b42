import { branch, nestedFanOuts, openParticipants, type Spoilt } from './definitions.ts';

/** Faults of pointers, data, schemas, credentials and sizes. */
export const spoiltData: Spoilt = {
  'a pointer without a slash': [
    ['VAL_BP_016 /actions/3/disclosures/0/dataPointers/0'],
    (it) => {
      it.actions[3].disclosures[0].dataPointers = ['collected'];
    },
  ],
  'a pointer with a wrong escape': [
    ['VAL_BP_016 /actions/2/credentialIssuanceConfig/holderKeySourceField'],
    (it) => {
      it.actions[2].credentialIssuanceConfig.holderKeySourceField = '/a~2';
    },
  ],
  'a pointer to the whole': [
    ['VAL_BP_016 /actions/3/disclosures/0/dataPointers/0'],
    (it) => {
      it.actions[3].disclosures[0].dataPointers = [''];
    },
  ],
  'a pointer into a list': [
    ['VAL_BP_017 /actions/1/disclosures/0/dataPointers/1'],
    (it) => {
      it.actions[1].disclosures[0].dataPointers = ['/safetyScore', '/conditions/0'];
    },
  ],
  'a disclosure to nobody': [
    ['VAL_BP_018 /actions/3/disclosures/0/participantAddress'],
    (it) => {
      it.actions[3].disclosures[0].participantAddress = 'x';
    },
  ],
  'a condition on what is not disclosed': [
    ['VAL_BP_020 /actions/2/routes/0/condition'],
    (it) => {
      it.actions[2].routes[0].condition = { '>': [{ var: 'safetyScore' }, 50] };
      it.actions[1].disclosures[0].dataPointers = ['/conditions'];
    },
  ],
  'a condition on what is disclosed in part': [
    ['VAL_BP_020 /actions/1/calculations/mail'],
    (it) => {
      it.actions[1].calculations = { mail: { var: 'contact' } };
      it.actions[0].disclosures[2].dataPointers.push('/contact/email');
    },
  ],
  'a condition on data of an action that is not required': [
    ['VAL_BP_020 /actions/3/calculations/x'],
    (it) => {
      it.actions[3].calculations = { x: { var: 'actions.1.safetyScore' } };
    },
  ],
  'a condition on nothing': [
    ['VAL_BP_020 /actions/0/calculations/feeMinor'],
    (it) => {
      it.actions[0].calculations.feeMinor = { var: 'floorArea' };
    },
  ],
  'a calculation of a later one': [
    ['VAL_BP_020 /actions/0/calculations/feeMinor'],
    (it) => {
      it.actions[0].calculations.feeMinor = { if: [{ var: 'riskTier' }, 1, 2] };
    },
  ],
  'a calculation of all data': [
    ['VAL_BP_020 /actions/1/calculations/all'],
    (it) => {
      it.actions[1].calculations = { all: { var: '' } };
    },
  ],
  'a calculation named like a property': [
    ['VAL_BP_FIELD /actions/0/calculations/hazardous'],
    (it) => {
      it.actions[0].calculations.hazardous = true;
    },
  ],
  'a pattern for backtracking': [
    ['VAL_BP_021 /actions/1/dataSchemas/0/properties/conditions/items/pattern'],
    (it) => {
      it.actions[1].dataSchemas[0].properties.conditions.items.pattern = '^(a+)+\\1$';
    },
  ],
  'a cycle without an exit': [
    ['VAL_BP_022 /actions/3/routes/0/nextActionIds/0'],
    (it) => {
      it.actions[3].routes[0].nextActionIds = [3];
    },
  ],
  'a cycle with an exit': [
    ['WARN_BP_CYCLE /actions/3/routes/1/nextActionIds/0'],
    (it) => {
      it.actions[3].routes.push({
        id: 'again',
        nextActionIds: [3],
        condition: { '!': { var: 'collected' } },
      });
    },
  ],
  'an output mapping of what is not disclosed': [
    ['VAL_BP_023 /actions/0/routes/0/outputMapping/~1payload~1estimatedCostMinor'],
    (it) => {
      it.actions[0].routes[0].outputMapping = { '/payload/estimatedCostMinor': '/safetyScore' };
    },
  ],
  'a reference that not all see': [
    ['VAL_BP_024 /instanceReference/fields/0'],
    (it) => {
      it.instanceReference.fields = ['/estimatedCostMinor'];
    },
  ],
  'a loose comparison of different types': [
    ['WARN_BP_LOOSE_EQ /actions/1/calculations/x'],
    (it) => {
      it.actions[1].calculations = { x: { '==': [{ var: 'safetyScore' }, '7'] } };
    },
  ],
  'a stealth address': [
    ['VAL_BP_STEALTH_UNSUPPORTED /participants/0/useStealthAddress'],
    (it) => {
      it.participants[0].useStealthAddress = true;
    },
  ],
  'a wallet that is no address': [
    ['VAL_BP_FIELD /participants/1/walletAddress'],
    (it) => {
      it.participants[1].walletAddress = 'w1abc';
    },
  ],
  'members of the earlier dialect': [
    ['WARN_BP_LEGACY_FIELD /actions/3/condition', 'WARN_BP_LEGACY_FIELD /actions/3/form/schema'],
    (it) => {
      it.actions[3].condition = { '==': [1, 1] };
      it.actions[3].form = { type: 'Layout', schema: {} };
    },
  ],
  'a reference to no schema': [
    ['VAL_BP_SCHEMA_REF /actions/1/dataSchemas/0/properties/conditions/$ref'],
    (it) => {
      it.actions[1].dataSchemas[0].properties.conditions = { $ref: 'https://example.org/x' };
    },
  ],
  'a schema that contains itself': [
    ['VAL_BP_SCHEMA_RECURSIVE /actions/1/dataSchemas/0/properties/conditions/items/$ref'],
    (it) => {
      it.actions[1].dataSchemas[0].properties.conditions.items = { $ref: '#' };
    },
  ],
  'a schema of a rejection that is none': [
    ['VAL_BP_SCHEMA /actions/1/rejectionConfig/rejectionSchema/type'],
    (it) => {
      it.actions[1].rejectionConfig.rejectionSchema = { type: 'text' };
    },
  ],
  'a field for files that is a text': [
    ['VAL_BP_SCHEMA_FILE /actions/0/dataSchemas/0/properties/plans/x-file'],
    (it) => {
      it.actions[0].dataSchemas[0].properties.plans.type = 'string';
    },
  ],
  'a field for files of any size': [
    ['VAL_BP_SCHEMA_FILE /actions/0/dataSchemas/0/properties/plans/x-file'],
    (it) => {
      it.actions[0].dataSchemas[0].properties.plans['x-file'].maxSizePerFile = 'any';
    },
  ],
  'a credential for nobody': [
    ['VAL_BP_CRED_001 /actions/2/credentialIssuanceConfig/recipientParticipantId'],
    (it) => {
      it.actions[2].credentialIssuanceConfig.recipientParticipantId = 'x';
    },
  ],
  'a credential for a wallet of the platform that cannot be refused': [
    ['VAL_BP_CRED_003 /actions/2/routes/0/nextActionIds/0'],
    (it) => {
      it.actions[2].credentialIssuanceConfig.targetAudience = 'PlatformWallet';
      delete it.actions[3].rejectionConfig;
    },
  ],
  'a credential of a type without a scheme': [
    ['VAL_BP_CRED_004 /actions/2/credentialIssuanceConfig/vct'],
    (it) => {
      it.actions[2].credentialIssuanceConfig.vct = 'site-permit';
    },
  ],
  'a requirement of a type without a scheme': [
    ['VAL_BP_CRED_004 /actions/0/credentialRequirements/0/type'],
    (it) => {
      it.actions[0].credentialRequirements[0].type = 'identity';
    },
  ],
  'a credential whatever is decided, also for the refused': [
    ['VAL_BP_CRED_005 /actions/2/credentialIssuanceConfig'],
    (it) => delete it.actions[2].credentialIssuanceConfig.issuanceCondition,
  ],
  'a credential whatever is decided': [
    ['WARN_BP_CRED_005 /actions/2/credentialIssuanceConfig'],
    (it) => {
      delete it.actions[2].credentialIssuanceConfig.issuanceCondition;
      it.actions[2].routes[1]['x-decision-notice'].adverse = false;
    },
  ],
  'seventeen open participants': [
    ['VAL_BP_ROUTING_SIZE /participants'],
    (it) => {
      delete it.instanceReference;
      it.participants.push(...openParticipants(16));
    },
  ],
  'a state that outgrows the metadata of a step': [
    ['VAL_BP_ROUTING_SIZE /actions'],
    (it) => {
      it.actions[3].routes[0].nextActionIds = [10];
      it.actions.push(...nestedFanOuts(12), branch(34, []));
    },
  ],
};
