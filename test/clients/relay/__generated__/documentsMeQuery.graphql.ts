/**
 * @generated SignedSource<<12b38a84669f707c326b50ac8f28c2fe>>
 * @lightSyntaxTransform
 */

/* tslint:disable */
/* eslint-disable */
// @ts-nocheck

import type { ConcreteRequest } from 'relay-runtime';
export type documentsMeQuery$variables = Record<PropertyKey, never>;
export type documentsMeQuery$data = {
  readonly me: {
    readonly username: string;
  } | null | undefined;
};
export type documentsMeQuery = {
  response: documentsMeQuery$data;
  variables: documentsMeQuery$variables;
};

const node: ConcreteRequest = (function(){
var v0 = {
  "alias": null,
  "args": null,
  "kind": "ScalarField",
  "name": "username",
  "storageKey": null
};
return {
  "fragment": {
    "argumentDefinitions": [],
    "kind": "Fragment",
    "metadata": null,
    "name": "documentsMeQuery",
    "selections": [
      {
        "alias": null,
        "args": null,
        "concreteType": "User",
        "kind": "LinkedField",
        "name": "me",
        "plural": false,
        "selections": [
          (v0/*:: as any*/)
        ],
        "storageKey": null
      }
    ],
    "type": "Query",
    "abstractKey": null
  },
  "kind": "Request",
  "operation": {
    "argumentDefinitions": [],
    "kind": "Operation",
    "name": "documentsMeQuery",
    "selections": [
      {
        "alias": null,
        "args": null,
        "concreteType": "User",
        "kind": "LinkedField",
        "name": "me",
        "plural": false,
        "selections": [
          (v0/*:: as any*/),
          {
            "alias": null,
            "args": null,
            "kind": "ScalarField",
            "name": "id",
            "storageKey": null
          }
        ],
        "storageKey": null
      }
    ]
  },
  "params": {
    "cacheID": "3930e9224e2cec9c941701fe5b53e8f6",
    "id": null,
    "metadata": {},
    "name": "documentsMeQuery",
    "operationKind": "query",
    "text": "query documentsMeQuery {\n  me {\n    username\n    id\n  }\n}\n"
  }
};
})();

(node as any).hash = "d41ada01f808b9d19df91d4b498c01d5";

export default node;
