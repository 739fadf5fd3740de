# A paginated list of products by Django REST framework, in one file, served by one sync worker of
# gunicorn.
import os
import secrets
import sys

import django
from django.conf import settings
from psycopg2.extensions import parse_dsn

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    bind = f"127.0.0.1:{os.environ['PORT']}"
    options = ["--chdir", here, "--bind", bind, "--workers", "1", "--worker-class", "sync", "--log-level", "warning"]
    # -B: writes no compiled copy of this file.
    os.execv(sys.executable, [sys.executable, "-B", "-m", "gunicorn", *options, "drf_app:application"])

dsn = parse_dsn(os.environ["DATABASE_URL"])

settings.configure(
    DEBUG=False,
    SECRET_KEY=secrets.token_hex(32),
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["rest_framework"],
    MIDDLEWARE=[],
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": dsn.pop("dbname"),
            "OPTIONS": dsn,
            "CONN_MAX_AGE": None,
        }
    },
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "DEFAULT_PERMISSION_CLASSES": [],
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "UNAUTHENTICATED_USER": None,
    },
)
django.setup()

# These imports read the settings.
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.urls import path
from rest_framework import generics, pagination, serializers
from rest_framework.response import Response


class Product(models.Model):
    id = models.AutoField(primary_key=True, db_column="pk")
    name = models.TextField()
    barcode = models.TextField()
    price = models.DecimalField(max_digits=12, decimal_places=2)

    class Meta:
        app_label = "shop"
        db_table = "product"
        managed = False


class ProductSerializer(serializers.ModelSerializer):
    # As a DecimalField it would be written as a string.
    price = serializers.FloatField()

    class Meta:
        model = Product
        fields = ["pk", "name", "barcode", "price"]


class ProductPagination(pagination.PageNumberPagination):
    page_size = 10

    def get_paginated_response(self, data):
        page = {"items": data, "count": self.page.paginator.count, "next": self.get_next_link(), "previous": self.get_previous_link()}
        return Response(page)


class ProductList(generics.ListAPIView):
    queryset = Product.objects.order_by("pk")
    serializer_class = ProductSerializer
    pagination_class = ProductPagination


urlpatterns = [path("api/v2/shop/products", ProductList.as_view())]
application = get_wsgi_application()
