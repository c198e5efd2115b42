import { branch, type Spoilt } from './definitions.ts';

/** Faults of ids, routes, logic and cycles. */
export const spoiltFlow: Spoilt = {
  'a participant twice': [
    ['VAL_BP_004 /participants/3/id'],
    (it) => it.participants.push({ id: 'applicant', name: 'Again' }),
  ],
  'an action twice': [['VAL_BP_004 /actions/4/id'], (it) => it.actions.push({ ...it.actions[3], id: 3 })],
  'a route twice': [
    ['VAL_BP_004 /actions/0/routes/1/id'],
    (it) => {
      it.actions[0].routes[1].id = 'risky';
    },
  ],
  'a target twice': [
    ['VAL_BP_004 /actions/0/routes/0/nextActionIds/1'],
    (it) => {
      it.actions[0].routes[0].nextActionIds = [1, 1];
    },
  ],
  'a shared schema twice': [
    ['VAL_BP_004 /dataSchemas/1/$id'],
    (it) => {
      it.dataSchemas = [{ $id: 'urn:a' }, { $id: 'urn:a' }];
    },
  ],
  'a sender that is nobody': [
    ['VAL_BP_005 /actions/3/sender'],
    (it) => {
      it.actions[3].sender = 'applicants';
    },
  ],
  'a rejection to nobody': [
    ['VAL_BP_005 /actions/1/rejectionConfig/targetParticipantId'],
    (it) => {
      it.actions[1].rejectionConfig.targetParticipantId = 'x';
    },
  ],
  'no start': [['VAL_BP_006 /actions'], (it) => delete it.actions[0].isStartingAction],
  'a route to nowhere': [
    ['VAL_BP_007 /actions/3/routes/0/nextActionIds/0'],
    (it) => {
      it.actions[3].routes[0].nextActionIds = [9];
    },
  ],
  'a requirement of nothing': [
    ['VAL_BP_007 /actions/1/requiredPriorActions/1'],
    (it) => it.actions[1].requiredPriorActions.push(9),
  ],
  'a rejection to nowhere': [
    ['VAL_BP_007 /actions/3/rejectionConfig/targetActionId'],
    (it) => {
      it.actions[3].rejectionConfig.targetActionId = 9;
    },
  ],
  'a rejection without a target': [
    ['VAL_BP_007 /actions/3/rejectionConfig/targetActionId'],
    (it) => {
      it.actions[3].rejectionConfig = {};
    },
  ],
  'an action that no route leads to': [
    ['VAL_BP_008 /actions/4'],
    (it) => it.actions.push({ ...branch(4, []), sender: 'planning-office' }),
  ],
  'an operator that is not allowed': [
    ['VAL_BP_009 /actions/0/calculations/feeMinor/max/1'],
    (it) => {
      it.actions[0].calculations.feeMinor.max[1] = { log: 1 };
    },
  ],
  'a condition with a wrong number of operands': [
    ['VAL_BP_009 /actions/0/routes/0/condition'],
    (it) => {
      it.actions[0].routes[0].condition = { '==': [1] };
    },
  ],
  'a start by a named wallet': [
    ['VAL_BP_010 /actions/0/sender'],
    (it) => {
      it.participants[0].walletAddress = it.participants[1].walletAddress;
    },
  ],
  'an output mapping of nothing': [
    ['VAL_BP_011 /actions/1/routes/0/outputMapping/~1payload~1score'],
    (it) => {
      it.actions[1].routes[0].outputMapping = { '/payload/score': '/decision' };
    },
  ],
  'an output mapping of another document': [
    ['VAL_BP_011 /actions/1/routes/0/outputMapping/~1state~1safetyScore'],
    (it) => {
      it.actions[1].routes[0].outputMapping = { '/state/safetyScore': '/decision' };
      it.actions[1].disclosures[0].dataPointers = ['/*'];
    },
  ],
  'an output mapping to nothing': [
    ['VAL_BP_011 /actions/1/routes/0/outputMapping/~1payload~1safetyScore'],
    (it) => {
      it.actions[1].routes[0].outputMapping = { '/payload/safetyScore': '/score' };
    },
  ],
  'an offer that is a text': [
    ['VAL_BP_012 /actions/3/dataSchemas/0/properties/offer/x-credential-offer'],
    (it) => {
      it.actions[3].dataSchemas[0].properties.offer = { type: 'string', 'x-credential-offer': true };
    },
  ],
  'an offer without its address': [
    ['WARN_BP_006 /actions/3/dataSchemas/0/properties/offer/x-credential-offer'],
    (it) => delete it.actions[3].dataSchemas[0].properties.offer.required,
  ],
  'an open participant that is shown data before it is bound': [
    ['WARN_BP_OPEN_RECIPIENT /actions/0/disclosures'],
    (it) => delete it.participants[2].walletAddress,
  ],
  'a route that is never taken': [
    ['VAL_BP_014 /actions/0/routes/0'],
    (it) => delete it.actions[0].routes[0].condition,
  ],
  'two defaults': [
    ['VAL_BP_014 /actions/0/routes/1/isDefault'],
    (it) => {
      it.actions[0].routes[0].isDefault = true;
    },
  ],
  'no default': [
    ['VAL_BP_015 /actions/0/routes'],
    (it) => {
      it.actions[0].routes = [
        it.actions[0].routes[0],
        { ...it.actions[0].routes[0], id: 'b', nextActionIds: [2] },
      ];
    },
  ],
  'a deadline of one branch': [
    ['VAL_BP_FIELD /actions/0/routes/0/branchDeadline'],
    (it) => {
      it.actions[0].routes[0].branchDeadline = 'P1D';
    },
  ],
};
