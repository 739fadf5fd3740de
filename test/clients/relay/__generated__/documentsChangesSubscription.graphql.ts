/**
 * @generated SignedSource<<290b346035abdb6b69ac12c327e27a53>>
 * @lightSyntaxTransform
 */

/* tslint:disable */
/* eslint-disable */
// @ts-nocheck

import type { ConcreteRequest } from 'relay-runtime';
export type documentsChangesSubscription$variables = Record<PropertyKey, never>;
export type documentsChangesSubscription$data = {
  readonly productChanged: {
    readonly product: {
      readonly name: string;
    } | null | undefined;
  };
};
export type documentsChangesSubscription = {
  response: documentsChangesSubscription$data;
  variables: documentsChangesSubscription$variables;
};

const node: ConcreteRequest = (function(){
var v0 = [
  {
    "kind": "Literal",
    "name": "kinds",
    "value": [
      "CHANGED"
    ]
  }
],
v1 = {
  "alias": null,
  "args": null,
  "kind": "ScalarField",
  "name": "name",
  "storageKey": null
};
return {
  "fragment": {
    "argumentDefinitions": [],
    "kind": "Fragment",
    "metadata": null,
    "name": "documentsChangesSubscription",
    "selections": [
      {
        "alias": null,
        "args": (v0/*:: as any*/),
        "concreteType": "ProductChange",
        "kind": "LinkedField",
        "name": "productChanged",
        "plural": false,
        "selections": [
          {
            "alias": null,
            "args": null,
            "concreteType": "Product",
            "kind": "LinkedField",
            "name": "product",
            "plural": false,
            "selections": [
              (v1/*:: as any*/)
            ],
            "storageKey": null
          }
        ],
        "storageKey": "productChanged(kinds:[\"CHANGED\"])"
      }
    ],
    "type": "Subscription",
    "abstractKey": null
  },
  "kind": "Request",
  "operation": {
    "argumentDefinitions": [],
    "kind": "Operation",
    "name": "documentsChangesSubscription",
    "selections": [
      {
        "alias": null,
        "args": (v0/*:: as any*/),
        "concreteType": "ProductChange",
        "kind": "LinkedField",
        "name": "productChanged",
        "plural": false,
        "selections": [
          {
            "alias": null,
            "args": null,
            "concreteType": "Product",
            "kind": "LinkedField",
            "name": "product",
            "plural": false,
            "selections": [
              (v1/*:: as any*/),
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
        ],
        "storageKey": "productChanged(kinds:[\"CHANGED\"])"
      }
    ]
  },
  "params": {
    "cacheID": "481b7058edfdae330ca23b0de9cee6ad",
    "id": null,
    "metadata": {},
    "name": "documentsChangesSubscription",
    "operationKind": "subscription",
    "text": "subscription documentsChangesSubscription {\n  productChanged(kinds: [CHANGED]) {\n    product {\n      name\n      id\n    }\n  }\n}\n"
  }
};
})();

(node as any).hash = "cf8b584be78788f4c3b2025437cb2aed";

export default node;
